// SPDX-License-Identifier: MIT
/* Draws the results of cut.js and recovery.js: the promises before a cut, what survived, what is gone, what a mount finds. */
"use strict";

const many = (count, one, more = `${one}s`) => `${count} ${count === 1 ? one : more}`;
const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0] ?? "");
const TYPES = {0o040000: "directory", 0o100000: "file", 0o120000: "symbolic link", 0o020000: "character device",
	0o060000: "block device", 0o010000: "fifo", 0o140000: "socket"};
const OUTCOME = /^[1-9]\d{0,18}$/;
const ROWS = 200; // the most rows of a table: a cut of a large run has more than a user reads

/* [[key, its count]], in the order in which the keys first occur. */
function counted(keys) {
	const counts = new Map();
	for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
	return [...counts];
}

/* A name as text. zfusectl writes bytes that are not ASCII as \xNN; bytes that are not UTF-8 stay in this form. */
function shownName(name) {
	return name.replace(/(\\x[89a-f][0-9a-f])+/g, (bytes) => {
		try {
			return decodeURIComponent(bytes.replaceAll("\\x", "%"));
		} catch {
			return bytes;
		}
	});
}

/* "5 to 7", "5" or "", for a list of consecutive numbers. */
const span = (numbers) => (numbers.length > 1 ? `${numbers[0]} to ${numbers.at(-1)}` : String(numbers[0] ?? ""));

function saidPromised({promised, kept}) {
	const log = promised.log_sequence ? `, and the log up to record ${promised.log_sequence}` : "";
	return `Promised: the state of generation ${promised.generation}${log}. ` +
		(kept ? "All of that is there." : "Not all of that is there: either the device broke the fault model, or zfuse has a bug.");
}

function saidFound({mounted}) {
	if (!mounted) return "A mount finds no superblock.";
	const {superblock, records} = mounted, numbers = records.map(({record}) => record.sequence);
	return `A mount picks the superblock of generation ${superblock.generation}, in ${place(trace, superblock.address)}, and ` +
		(numbers.length ? `replays ${many(numbers.length, "record")} of the log: ${span(numbers)}.` : "replays no record of the log.");
}

function saidSurvived({fates, flight}) {
	const done = flight.filter(({executed, refused}) => executed && !refused).length;
	const blocks = counted(fates.map(({fate}) => fate)).map(([fate, count]) => `${count} ${fate}`);
	return `Survived: of ${many(flight.length, "command")} in flight ${done} ${done === 1 ? "was" : "were"} carried out. ` +
		(fates.length ? `Of ${many(fates.length, "block")} that were not durable, ${listed(blocks)}.` : "Every block was durable.");
}

/* Names the transactions newer than the superblock, and the records of the model that the mount does not replay. */
function saidGone({mounted}) {
	const {transactions, records} = model.state, generation = mounted?.superblock.generation ?? 0;
	const last = mounted ? mounted.superblock.log_sequence + mounted.records.length : 0;
	const lost = [...transactions.values()].filter((transaction) => transaction.generation > generation && transaction.joins);
	const gone = [...records.keys()].filter((sequence) => sequence > last);
	const parts = lost.map(({generation: its, joins}) => `what the log does not have of ${many(joins, "join")} of transaction ${its}`);
	if (gone.length) parts.push(`${many(gone.length, "record")} of the log`);
	return `Gone: ${parts.length ? listed(parts) : "nothing that was there before"}.`;
}

function becameOf({event, executed, refused}) {
	if (refused) return "refused by the device";
	return executed ? "carried out" : event.command === "flush" ? "lost: it made nothing durable" : "not carried out";
}

function drawFlight({flight}) {
	rows("cut-flight", ["Event", "In flight", "What became of it"], flight.slice(0, ROWS).map((one) => ({
		cells: [one.event.sequence, `${one.event.command}${one.event.purpose === "zone" ? "" : `, ${one.event.purpose}`}, ` +
			place(trace, one.event.address), becameOf(one)],
		state: one.executed ? "" : "past",
	})));
}

function drawFates({fates}) {
	const groups = counted(fates.map(({write, zone, fate}) => `${write}|${zone}|${fate}`)).slice(0, ROWS);
	rows("cut-fates", ["Write", "Zone", "Blocks", "A read finds"], groups.map(([group, count]) => {
		const [write, zone, fate] = group.split("|");
		return {cells: [`event ${write}`, zone, count, fate], state: fate === "as written" ? "" : "past"};
	}));
}

function drawPaths({device, mounted}) {
	const paths = mounted?.tree?.paths() ?? [];
	rows("cut-paths", ["Type", "Bytes", "Inode", "Data blocks", "Written last by events", "Path"], paths.slice(0, ROWS).map((path) => {
		const extents = [...(mounted.tree.extents.get(path.inode) ?? [])].filter(([, {type}]) => type === DATA);
		const blocks = extents.flatMap(([offset, extent]) => blocksOf(device, offset, extent));
		const writes = counted(blocks.map(({write}) => write || "before the trace")).map(([write]) => write);
		return {cells: [TYPES[path.mode & FILE_TYPE] ?? "unknown", path.size, path.inode, blocks.length,
			writes.slice(0, 12).join(", ") + (writes.length > 12 ? ", …" : ""), `/${path.path.map(shownName).join("/")}`]};
	}));
}

/* Cuts the power at the position of the slider, with the outcome in the field. */
function cutPower() {
	const seed = $("outcome").value.trim();
	pause();
	if (!trace.facts) return;
	if (!model.position) return sayCut("Nothing has happened yet: take a step first.");
	if (!OUTCOME.test(seed)) return sayCut("An outcome is a number from 1 on, of at most 19 digits.");
	if (trace.missingBefore(model.position - 1)) return sayCut("Events before this step are missing: nobody knows what was in flight.");
	let cut;
	try {
		cut = cutHere(trace, model.state, model.position, seed);
	} catch (error) {
		return sayCut(error.message);
	}
	const at = trace.sequence(model.position - 1);
	sayCut(`The power is cut after event ${number(at)}, outcome ${seed}. ${saidFound(cut)}`);
	$("cut-promised").textContent = saidPromised(cut);
	$("cut-survived").textContent = saidSurvived(cut);
	$("cut-gone").textContent = saidGone(cut);
	$("cut-command").textContent = `zfusectl lab crash TRACE IMAGE --trace-data FILE --at ${at} --outcome ${seed}`;
	for (const paint of [drawFlight, drawFates, drawPaths]) paint(cut);
	$("cut-found").hidden = false;
}

function sayCut(text) {
	$("cut-said").textContent = text;
	$("cut-found").hidden = true;
}

function nextOutcome() {
	$("outcome").value = String(BigInt(OUTCOME.test($("outcome").value) ? $("outcome").value : 0) + 1n);
	cutPower();
}

function listenToCuts() {
	$("cut").addEventListener("click", cutPower);
	$("next-outcome").addEventListener("click", nextOutcome);
	$("outcome").addEventListener("change", cutPower);
	if (trace.facts) return;
	for (const id of ["cut", "next-outcome", "outcome"]) $(id).disabled = true;
	sayCut("This page was made without the data of the trace: zfusectl replay TRACE --trace-data FILE makes one that can cut.");
}
