#!/usr/bin/env node
// SPDX-License-Identifier: MIT
/*
 * Cuts the power in a replay's page without a browser.
 *
 *     cut.js PAGE.html classes       prints, as JSON, for each class of cuts the numbers of events after which a cut
 *                                    belongs to it
 *     cut.js PAGE.html cuts          reads a JSON array of [events, seed] from standard input; prints for each a line of
 *                                    JSON: what a mount finds according to the page's model
 */
"use strict";
const fs = require("fs");
const vm = require("vm");
const zlib = require("zlib");
const {data, records, code} = require("./parts.js")(process.argv[2]);

const buffer = Uint8Array.from(zlib.inflateRawSync(Buffer.from(records.trim(), "base64"))).buffer;
vm.runInThisContext(`${code}
globalThis.page = {Trace, Model, Facts, cutHere, blocksOf, treeOf};`);
const {Trace, Model, cutHere, blocksOf} = globalThis.page;
const trace = new Trace(JSON.parse(data), buffer), model = new Model(trace);

/* ---- classes ---- */

/* The reclaims: for each the events from the choice of the victim to the last block that was moved out of it. */
function reclaims() {
	const found = [];
	for (let i = 0; i < trace.count; i++) {
		const event = trace.event(i);
		if (event.event === "victim_chosen") found.push({zone: trace.zoneOf(event.address), first: i, last: i});
		if (event.event.startsWith("block_") && found.length && trace.zoneOf(event.from) === found.at(-1).zone) found.at(-1).last = i;
	}
	return found;
}

function classes() {
	const places = {commit: [], ring: [], reclaim: [], appends: [], place: [], recovery: []}, moving = reclaims();
	const isRecovery = trace.header.workload.includes(":");
	let turning = false;
	for (let i = 0; i < trace.count; i++) {
		const event = trace.event(i);
		model.forward();
		if (event.event === "command_submitted" && event.command === "reset" && trace.zoneOf(event.address) < 2) turning = true;
		if (event.event === "committed") turning = false;
		const appends = [...model.state.commands.values()].filter(({command}) => command === "append");
		const inPlace = [...model.state.commands.values()].some(({command, address}) =>
			/^(write|zeroes)$/.test(command) && trace.zoneOf(address) < trace.header.conventional);
		const is = {commit: model.state.frozen !== null, ring: turning, appends: appends.length > 1, recovery: isRecovery, place: inPlace};
		is.reclaim = moving.some(({first, last}) => first <= i && i <= last);
		for (const name of Object.keys(places)) if (is[name]) places[name].push(i + 1);
	}
	return {...places, count: trace.count};
}

/* ---- cuts ---- */

/* Large multiples of a block are exact as numbers, but JavaScript would not print all digits. */
const exact = (offset) => String(BigInt(offset));

function told(device, tree, {path, inode, mode, size}) {
	if ((mode & 0o170000) !== 0o100000) return {path, mode, size};
	const extents = [...(tree.extents.get(inode) ?? [])].map(([offset, extent]) => ({offset, ...extent}));
	const blocks = extents.filter(({type}) => type === 2).flatMap((extent) => blocksOf(device, extent.offset, extent))
		.map((block) => ({...block, offset: exact(block.offset)}));
	const others = extents.filter(({type}) => type !== 2).map(({type, offset, bytes}) => [type, exact(offset), bytes]);
	const rewritten = blocks.filter(({offset}) => tree.rewritten.has(`${inode}/${offset}`)).map(({offset}) => offset);
	return {path, mode, size, blocks, others, rewritten};
}

/* The content that a read of a block returns: [address, its sectors]. */
const foundAt = (zone, block) => [(zone.first + block) * 4096, trace.facts.contents[zone.read(block).content]];

function cut([events, seed]) {
	const {device, mounted, kept, promised, fates} = cutHere(trace, model.seek(events), events, seed);
	return {
		kept, promised, found: fates.map(({zone, block}) => foundAt(device.zones[zone], block)),
		generation: mounted.superblock.generation,
		records: mounted.records.map(({record}) => record.sequence),
		wp: device.zones.map(({wp}) => wp),
		paths: mounted.tree.paths().map((path) => told(device, mounted.tree, path)),
	};
}

if (process.argv[3] === "classes") console.log(JSON.stringify(classes()));
else for (const asked of JSON.parse(fs.readFileSync(0, "utf8"))) console.log(JSON.stringify(cut(asked)));
