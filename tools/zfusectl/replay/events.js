// SPDX-License-Identifier: MIT
/*
 * How each event is shown: its rail, its mark on the rail, a sentence about the event, and the section of the documentation
 * that explains it. A test checks that every event of src/trace/events.h is here, and that the sections exist.
 */
"use strict";

const UNITS = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];

function size(bytes) {
	const [unit, name] = UNITS.find(([least]) => bytes >= least) ?? [1, "bytes"];
	return `${Number((bytes / unit).toFixed(1))} ${name}`;
}

/* A result in words: a number of bytes, or an error of Linux. */
const result = (value) => (value < 0 ? `fails with error ${-value}` : value > 0 ? `ends with ${value}` : "ends well");
/* "zone 3 + 0x2000" */
const place = (trace, address) => {
	const zone = trace.zoneOf(address);
	return `zone ${zone} + 0x${(address - zone * trace.header.zone_size).toString(16)}`;
};
const range = (e) => `${size(e.bytes)} of inode ${e.inode} from offset ${e.offset}`;
const what = (e) => `${e.command[0].toUpperCase()}${e.command.slice(1)} of ${size(e.bytes)}${e.purpose === "zone" ? "" : ` (${e.purpose})`}`;
const fua = (e) => (e.fua ? " with FUA, durable when it completes," : "");

const RAILS = ["operation", "submitted", "completed", "files", "commit", "zones"];

const EXTENT = ["format.md", "An extent: `struct zf_disk_extent`, 24 bytes, then the bytes if it is inline"];

/* What follows an operation that is done again, by its result. */
const AGAIN = {
	"-11": "has to wait, and begins again on a thread that may",
	"-115": "waits for the device on no thread, and begins again when the device has answered",
};

/* name: [rail, mark, document, section, (event, trace) => sentence] */
const MARKS = {
	dropped: ["zones", "!", "trace.md", "What holds",
		(e) => `${e.count} events of thread ${e.thread} are missing: from here on something may be unknown`],
	ended: ["zones", "■", "trace.md", "What holds",
		(e) => `The trace ends, with ${e.events} events and ${e.dropped} dropped ones`],
	thread: ["operation", "t", "architecture.md", "Who runs", (e) => `Thread ${e.thread} is "${e.name}"`],

	operation_began: ["operation", "[", "architecture.md", "The life of a write", (e) =>
		`${e.operation} begins` + (e.inode ? `, on inode ${e.inode}` : "") +
		(e.bytes ? `: ${size(e.bytes)} from offset ${e.offset}` : "")],
	operation_ended: ["operation", "]", "architecture.md", "The life of a write", (e) =>
		`${e.operation}${e.inode ? `, on inode ${e.inode},` : ""} ` +
		(AGAIN[e.result] ?? result(e.result))],

	command_submitted: ["submitted", "↓", "design.md", "1. The device picks the address", (e, trace) =>
		`${what(e)}${fua(e)} goes to ` + (e.command === "append"
			? `zone ${trace.zoneOf(e.address)}: to the zone, not to an address`
			: place(trace, e.address))],
	command_completed: ["completed", "↑", "design.md", "1. The device picks the address", (e, trace) =>
		`${what(e)} ` + (e.command === "append" && e.result === 0
			? `has landed at ${place(trace, e.address)}`
			: `at ${place(trace, e.address)} ${result(e.result)}`)],

	zone: ["zones", "Z", "trace.md", "What holds", (e, trace) =>
		`Zone ${trace.zoneOf(e.address)} was there before: role ${e.role}, ${size(e.written)} written, ${size(e.live)} live`],
	zone_role: ["zones", "z", "design.md", "5. A zone has one role",
		(e, trace) => `Zone ${trace.zoneOf(e.address)} was ${e.before}, and is ${e.role} now`],
	zone_live: ["zones", "±", "space.md", "Why space comes back later",
		(e, trace) => `Zone ${trace.zoneOf(e.address)} has ${size(e.live)} live now`],
	zone_reset: ["zones", "r", "design.md", "6. When a zone comes back", (e, trace) =>
		e.result < 0 ? `The reset of zone ${trace.zoneOf(e.address)} ${result(e.result)}`
			: `Zone ${trace.zoneOf(e.address)} is empty again, after ${e.resets} resets in all`],
	zone_finished: ["zones", "f", "design.md", "5. A zone has one role",
		(e, trace) => `The finish of zone ${trace.zoneOf(e.address)}, before it was full, ${result(e.result)}`],

	extent_fixed: ["files", "E", "write-path.md", "The append",
		(e, trace) => `${range(e)} is at ${place(trace, e.address)}: where the completion said`],
	extents_merged: ["files", "M", "write-path.md", "The append",
		(e, trace) => `Two neighbours become one extent: ${range(e)}, at ${place(trace, e.address)}`],
	extent_set: ["files", "+", ...EXTENT, (e, trace) =>
		`The tree says now: ${range(e)} is ` +
		({data: `at ${place(trace, e.address)}`, zero: "zero, without a block", inline: "in the tree itself"}[e.type] ?? e.type)],
	extent_removed: ["files", "−", ...EXTENT, (e) =>
		`The extent of inode ${e.inode} at offset ${e.offset} is gone from the tree`],

	transaction_joined: ["commit", "J", "design.md", "3. Freezing is incrementing a number",
		(e) => `An operation joins transaction ${e.generation}, with room for ${e.items} items`],
	transaction_frozen: ["commit", "F", "design.md", "3. Freezing is incrementing a number", (e) =>
		`Transaction ${e.generation} is frozen, with the log up to record ${e.log_sequence}; ${e.generation + 1} runs now`],
	node_sealed: ["commit", "N", "design.md", "9. Nodes verify themselves, and each other", (e, trace) =>
		`A node of the ${e.tree} tree, level ${e.level} with ${e.items} items, is sealed at ${place(trace, e.address)}` +
		(e.second ? ` and ${place(trace, e.second)}` : "")],
	tree_sealed: ["commit", "T", "format.md", "The root tree",
		(e, trace) => `The new root of the ${e.tree} tree, level ${e.level}, is at ${place(trace, e.address)}`],
	hole_written: ["commit", "H", "design.md", "2. Metadata is one stream per transaction",
		(e, trace) => `A hole: ${size(e.bytes)} of zeroes at ${place(trace, e.address)}`],
	committed: ["commit", "C", "design.md", "4. The superblock is a log", (e, trace) =>
		`The commit point: superblock ${e.generation} is durable at ${place(trace, e.address)}. ` +
		`The log up to record ${e.log_sequence} is superfluous`],

	log_appended: ["commit", "L", "design.md", "15. A durable write is one append", (e, trace) =>
		`Record ${e.log_sequence} of the log is at ${place(trace, e.address)}: ` +
		`${e.bodies} bodies and ${e.data_blocks} blocks of data in ${size(e.bytes)}`],
	log_replayed: ["commit", "R", "crash-consistency.md", "Mounting after a crash", (e) =>
		`Recovery repeats number ${e.log_number}: ${e.type === "extents" ? "the extents" : "an operation"} of inode ${e.inode}`],

	victim_chosen: ["zones", "V", "space.md", "Which zone", (e, trace) =>
		`Reclaim chooses zone ${trace.zoneOf(e.address)}: ${size(e.live)} of ${size(e.written)} are live and have to move`],
	block_moved: ["zones", "m", "space.md", "Moving in the order of the files",
		(e, trace) => `A block of ${place(trace, e.from)} has a copy at ${place(trace, e.to)}`],
	block_swapped: ["files", "s", "space.md", "Swapping, if nothing has changed", (e, trace) =>
		`Inode ${e.inode} names the block at offset ${e.offset} at its new place, ${place(trace, e.to)}`],
	block_dropped: ["files", "d", "space.md", "Swapping, if nothing has changed", (e, trace) =>
		`The copy at ${place(trace, e.to)} is given up: inode ${e.inode} has changed at offset ${e.offset}`],
};

const UNKNOWN = ["zones", "?", "trace.md", "The table", (e) => `This page knows no such event: ${e.event}`];

/* {rail, mark, document, section, text} */
function describe(event, trace) {
	const [rail, mark, document, section, tell] = MARKS[event.event] ?? UNKNOWN;
	return {rail, mark, document, section, text: `${tell(event, trace)}.`};
}
