#!/usr/bin/env node
// SPDX-License-Identifier: MIT
/*
 * Runs the model of a replay's page without a browser: prints, as JSON, the state after its last event.
 *
 *     state.js PAGE.html
 *
 * The code and the trace are those in the page. On the way the model moves back and forth, and must reach the same states.
 */
"use strict";
const vm = require("vm");
const zlib = require("zlib");
const {data, records, code} = require("./parts.js")(process.argv[2]);

const sorted = (map) => [...map].sort((a, b) => (a[0] < b[0] ? -1 : 1));
const plain = (value) => JSON.stringify(value, (key, part) => (part instanceof Map ? sorted(part) : part));

/* Moves from `near` to `far`, back, and to `far` again; the states must be the same. */
function check(model, near, far) {
	const before = plain(model.seek(near)), after = plain(model.seek(far));
	if (plain(model.seek(near)) !== before) throw new Error(`back from event ${far}, the state after ${near} is another one`);
	if (plain(model.seek(far)) !== after) throw new Error(`forth from event ${near}, the state after ${far} is another one`);
}

const buffer = Uint8Array.from(zlib.inflateRawSync(Buffer.from(records.trim(), "base64"))).buffer;
vm.runInThisContext(`${code}
function lastState(data, buffer, check) {
	const trace = new Trace(data, buffer), model = new Model(trace);
	for (let i = 0; i < 8; i++) check(model, Math.floor((trace.count * i) / 8), Math.floor((trace.count * (i + 1)) / 8));
	const state = model.seek(trace.count);
	const unmarked = data.events.map((kind) => kind.name).filter((name) => !MARKS[name]);
	for (let i = 0; i < trace.count; i++) describe(trace.event(i), trace);
	return {
		header: trace.header,
		count: trace.count,
		missing: trace.count ? trace.missingBefore(trace.count - 1) : 0,
		misfits: [...model.misfits].map(([index, text]) => ({...trace.event(index), misfit: text})),
		unmarked,
		sections: Object.entries(MARKS).map(([name, [, , document, section]]) => ({name, document, section})),
		amplification: amplification(state),
		empty: emptyZones(state, trace.header),
		replayable: replayable(state).map((record) => record.log_sequence),
		extents: [...state.inodes.keys()].map((inode) => ({inode, extents: extentsOf(state, inode)})),
		zones: [...state.zones.values()].map((zone) => ({...zone, pieces: zone.pieces.size, holes: zone.holes.size})),
		ring: [...state.ring.values()],
		superblock: state.superblock,
		ended: state.ended,
		operations: [...state.operations.values()],
		commands: [...state.commands.values()],
	};
}`);
process.stdout.write(JSON.stringify(globalThis.lastState(JSON.parse(data), buffer, check)));
