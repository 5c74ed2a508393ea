// SPDX-License-Identifier: MIT
/*
 * Counts what a trace contains, with the code of its page. It runs in the page itself and without a browser.
 *
 *     facts.js PAGE.html       prints what facts() below returns, as JSON
 */
"use strict";

/* The number of writing commands that were submitted before a command to the same zone that completed earlier. */
function overtakings(trace, completions) {
	const last = new Map(); // zone -> the newest submission that has completed
	let count = 0;
	for (const event of completions) {
		const zone = trace.zoneOf(event.address), newest = last.get(zone) ?? 0;
		if (event.submitted < newest) count++;
		last.set(zone, Math.max(newest, event.submitted));
	}
	return count;
}

/* The number of writing commands that landed below a command to the same zone that was submitted earlier. */
function landedOtherwise(trace, completions) {
	const bySubmission = [...completions].sort((a, b) => a.submitted - b.submitted), last = new Map();
	let count = 0;
	for (const event of bySubmission) {
		const zone = trace.zoneOf(event.address), highest = last.get(zone) ?? -1;
		if (event.address < highest) count++;
		last.set(zone, Math.max(highest, event.address));
	}
	return count;
}

/* The number of fsyncs, and of those that took exactly one command: a log record with FUA that carries the data. */
function fsyncs(trace, events) {
	const found = {all: 0, oneAppend: 0};
	for (const began of events.filter((e) => e.event === "operation_began" && e.operation === "fsync")) {
		const inside = events.slice(began.index, trace.partner[began.index]);
		const commands = inside.filter((e) => e.event === "command_submitted" && trace.cause[e.index] === began.index);
		const record = inside.find((e) => e.event === "log_appended");
		found.all++;
		if (commands.length === 1 && commands[0].fua && record?.submitted === commands[0].sequence && record.data_blocks > 0) found.oneAppend++;
	}
	return found;
}

/* The number of writes to bytes of a conventional zone that were written before. */
function writesInPlace(trace, completions) {
	const written = new Set(), {block_size: block, conventional} = trace.header;
	let count = 0;
	for (const event of completions.filter((e) => trace.zoneOf(e.address) < conventional && trace.zoneOf(e.address) > 1)) {
		let isAgain = false;
		for (let at = event.address; at < event.address + event.bytes; at += block) {
			isAgain ||= written.has(at);
			written.add(at);
		}
		if (isAgain) count++;
	}
	return count;
}

function ringTurns(trace, events) {
	const zones = events.filter((e) => e.event === "committed").map((e) => trace.zoneOf(e.address));
	return zones.filter((zone, i) => i > 0 && zone !== zones[i - 1]).length;
}

/* The number of zones out of which blocks were moved, and which were reset afterwards. */
function emptied(trace, events) {
	const moved = events.filter((e) => e.event === "block_moved");
	const isReset = (zone, after) => events.some((e) => e.event === "zone_reset" && e.index > after && trace.zoneOf(e.address) === zone);
	return new Set(moved.map((e) => ({zone: trace.zoneOf(e.from), at: e.index})).filter(({zone, at}) => isReset(zone, at))
		.map(({zone}) => zone)).size;
}

function facts(trace) {
	const model = new Model(trace), state = model.seek(trace.count);
	const events = Array.from({length: trace.count}, (_, i) => trace.event(i));
	const completions = events.filter((e) => e.event === "command_completed" && WRITING.includes(e.command) && e.result === 0);
	const count = (name) => events.filter((e) => e.event === name).length;
	return {
		events: trace.count,
		misfits: [...model.misfits.values()],
		overtakings: overtakings(trace, completions),
		landedOtherwise: landedOtherwise(trace, completions),
		mostInFlight: state.most_in_flight,
		commits: count("committed") - 1,
		extentsFixed: count("extent_fixed"),
		holes: count("hole_written"),
		ringTurns: ringTurns(trace, events),
		ringResets: events.filter((e) => e.event === "command_submitted" && e.command === "reset" && trace.zoneOf(e.address) < 2).length,
		victims: count("victim_chosen"),
		moved: count("block_moved"),
		swapped: count("block_swapped"),
		emptied: emptied(trace, events),
		fsyncs: fsyncs(trace, events),
		replayed: count("log_replayed"),
		zeroes: completions.filter((e) => e.command === "zeroes").length,
		writesInPlace: writesInPlace(trace, completions),
		extentsSet: count("extent_set"),
		/* The purposes of reads, resets, finishes and zeroes. A flush has no purpose of its own. */
		purposes: [...new Set(events.filter((e) => e.event === "command_submitted" && /^(read|reset|finish|zeroes)$/.test(e.command))
			.map((e) => `${e.command} ${e.purpose}`))].sort(),
		sent: Object.fromEntries(state.sent),
		written: state.written,
	};
}

if (typeof document === "undefined") {
	const fs = require("fs");
	const vm = require("vm");
	const zlib = require("zlib");
	const {data, records, code} = require("./parts.js")(process.argv[2]);
	const buffer = Uint8Array.from(zlib.inflateRawSync(Buffer.from(records.trim(), "base64"))).buffer;
	vm.runInThisContext(`${code}\nglobalThis.page = {Trace, Model, WRITING};`);
	Object.assign(globalThis, globalThis.page);
	process.stdout.write(JSON.stringify(facts(new Trace(JSON.parse(data), buffer))));
}
