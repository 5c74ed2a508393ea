// SPDX-License-Identifier: MIT
/*
 * Simulates a mount of a device after a cut (cut.js): the superblock that the mount picks, the records of the log that it
 * replays, and the names, sizes and blocks that it finds. This file uses no DOM.
 */
"use strict";

const NO_ZONE = 2 ** 32 - 1, RING_SLOTS = 1024;

/* ---- which superblock, which records ---- */

/* The superblock record in a block of zone 0 or 1, if the block has a whole one; otherwise null. */
function recordIn(device, zone, slot) {
	const record = device.facts.superblocks[zone.read(slot).content];
	return record && record.address === (zone.first + slot) * BLOCK ? record : null;
}

/* The newest superblock record of one zone (src/superblock/ring_slots.c). */
function newestIn(device, zone) {
	const count = zone.capacity / BLOCK, records = [];
	const end = zone.conventional ? Math.min(count, RING_SLOTS) : zone.wp / BLOCK;
	for (let slot = 0; slot < end; slot++) records.push(recordIn(device, zone, slot));
	if (zone.conventional) return records.reduce((a, b) => (b && (!a || b.generation > a.generation) ? b : a), null);
	/* A read of a torn record may return a record of the zone's previous life, so older generations do not count. */
	const first = records[0]?.generation ?? 0;
	return records.findLast((record) => record && record.generation >= first) ?? null;
}

function newestSuperblock(device) {
	const [a, b] = device.zones.slice(0, 2).map((zone) => newestIn(device, zone));
	return a && b ? (a.generation >= b.generation ? a : b) : a ?? b;
}

/* The whole record at a block that belongs to the log of this superblock; null: there is none. */
function logRecordAt(device, superblock, which, zone, block, limit) {
	const record = device.facts.records[zone.read(block).content];
	if (!record || block + record.contents.length > limit) return null;
	if (record.epoch !== superblock.log_epoch || record.zone_resets !== superblock.log_zone_resets[which]) return null;
	if (record.zone_address !== zone.first * BLOCK) return null;
	return record.contents.every((content, i) => zone.read(block + i).content === content) ? record : null;
}

/* All whole records of the superblock's log: [{record, address, which}], by place (src/log/scan.c). */
function logRecords(device, superblock) {
	const found = [];
	superblock.log_zone.forEach((number, which) => {
		if (number === NO_ZONE) return;
		const zone = device.zones[number], limit = (zone.conventional ? zone.capacity : zone.wp) / BLOCK;
		for (let block = superblock.log_pointer[which] / BLOCK; block < limit;) {
			const record = logRecordAt(device, superblock, which, zone, block, limit);
			if (record) found.push({record, address: (zone.first + block) * BLOCK, which});
			block += record ? record.contents.length : 1;
		}
	});
	return found;
}

/* The records that the mount replays: from the first one after the superblock's, to the first gap (src/log/read.c). */
function recordsToReplay(device, superblock) {
	const found = logRecords(device, superblock), replayed = [];
	for (let next = superblock.log_sequence + 1; ; next++) {
		const same = found.filter(({record}) => record.sequence === next);
		if (!same.length || same.some(({record}) => record.contents[0] !== same[0].record.contents[0])) return replayed;
		replayed.push(same[0]);
	}
}

/* ---- names, sizes, extents ---- */

const FILE_TYPE = 0o170000, REGULAR = 0o100000;
const INLINE = 1, DATA = 2, ZERO = 3; // types of extents, and of a log record's ranges; 0 is a hole
const alignUp = (size) => ((size + BigInt(BLOCK) - 1n) / BigInt(BLOCK)) * BigInt(BLOCK);

/* The names, sizes and extents of the fs tree (tools/zfusectl/lab/items.h). */
class Tree {
	constructor() {
		this.inodes = new Map(); // inode -> {mode, size}
		this.names = new Map(); // directory -> hash -> [[name, inode, type]]
		this.extents = new Map(); // inode -> offset -> {type, bytes, address}
		this.intents = new Map(); // number -> {inode, from, to}
		this.rewritten = new Set(); // "inode/offset" of blocks whose end a replay zeroes, if that is not zero already
	}

	of(map, id) {
		if (!map.has(id)) map.set(id, new Map());
		return map.get(id);
	}

	set([kind, id, ...rest]) {
		if (kind === "i") this.inodes.set(id, {mode: rest[0], size: BigInt(rest[1])});
		if (kind === "n") this.of(this.names, id).set(rest[0], rest[1]);
		if (kind === "x") this.of(this.extents, id).set(rest[0], {type: rest[1], bytes: rest[2], address: rest[3]});
		if (kind === "t") this.intents.set(rest[0], {inode: rest[1], from: rest[2], to: rest[3]});
	}

	delete([kind, id, place]) {
		if (kind === "i") this.inodes.delete(id);
		if (kind === "n") this.of(this.names, id).delete(place);
		if (kind === "x") this.of(this.extents, id).delete(place);
		if (kind === "t") this.intents.delete(place);
	}

	/* The end of an extent in the file. An inline extent takes the whole first block. */
	endOf(offset, {type, bytes}) { return offset + (type === INLINE ? BLOCK : bytes); }

	drop(inode, from, to) {
		const extents = this.of(this.extents, inode);
		for (const [offset, extent] of [...extents]) {
			const end = this.endOf(offset, extent);
			if (end <= from || offset >= to) continue;
			extents.delete(offset);
			if (offset < from) extents.set(offset, {...extent, bytes: from - offset});
			if (end > to) extents.set(to, {...extent, bytes: end - to, address: extent.address && extent.address + to - offset});
		}
	}

	put(inode, offset, extent) {
		this.drop(inode, offset, this.endOf(offset, extent));
		this.of(this.extents, inode).set(offset, extent);
	}

	resize(id, size) {
		const inode = this.inodes.get(id), last = inode.size - (inode.size % BigInt(BLOCK));
		if (size <= inode.size) this.drop(id, Number(alignUp(size)), Infinity);
		else if (last !== inode.size) this.rewritten.add(`${id}/${last}`);
		this.inodes.set(id, {...inode, size});
	}

	/* ---- recovery (src/fs/mount) ---- */

	finishIntents() {
		for (const {inode, from, to} of this.intents.values()) this.drop(inode, from, to);
		this.intents.clear();
	}

	replay(body, address) {
		if (body.edits) this.replayOperation(body.edits);
		else this.replayState(body, address);
	}

	replayOperation(edits) {
		for (const [kind, what] of edits) {
			if (kind === "resize") this.resize(what[0], BigInt(what[1]));
			if (kind === "delete") this.delete(what);
			if (kind === "set") this.replaySet(what);
		}
	}

	/* An item of an operation does not change the size of a regular file. */
	replaySet(item) {
		const size = this.inodes.get(item[1])?.size ?? 0n;
		this.set(item);
		if (item[0] === "i" && (item[2] & FILE_TYPE) === REGULAR) this.inodes.get(item[1]).size = size;
	}

	replayState({inode, mode, size, ranges}, address) {
		const bytes = BigInt(size), end = Number(alignUp(bytes));
		if (bytes < this.inodes.get(inode).size) this.resize(inode, bytes);
		for (const [type, offset, length, at, riding] of ranges) {
			const inFile = Math.min(length, end - offset);
			if (type === 0) this.drop(inode, offset, offset + length);
			if (type === INLINE && bytes > 0n) this.put(inode, offset, {type, bytes: length, address: 0});
			if (type === DATA && inFile > 0) this.put(inode, offset, {type, bytes: inFile, address: riding ? address + at : at});
			if (type === ZERO) this.put(inode, offset, {type, bytes: length, address: 0});
		}
		this.inodes.set(inode, {mode, size: bytes});
	}

	/* ---- the result ---- */

	/* All paths: [{path: [name], inode, mode, size}], parents first; in a directory by name. */
	paths(directory = 1, parent = []) {
		const entries = [...this.of(this.names, directory).values()].flat().sort((a, b) => (a[0] < b[0] ? -1 : 1));
		return entries.flatMap(([name, inode]) => {
			const path = [...parent, name], {mode, size} = this.inodes.get(inode) ?? {mode: 0, size: 0n};
			const below = (mode & FILE_TYPE) === 0o040000 ? this.paths(inode, path) : [];
			return [{path, inode, mode, size: String(size)}, ...below];
		});
	}
}

/* The tree of a commit; null: the facts do not have it. */
function treeOf(facts, generation) {
	const tree = new Tree();
	let found = false;
	for (const changes of facts.trees) {
		if (changes.generation > generation) break;
		changes.gone.forEach((key) => tree.delete(key));
		changes.set.forEach((item) => tree.set(item));
		found = changes.generation === generation;
	}
	return found ? tree : null;
}

/* The blocks of a data extent: for each its address, and the write whose block is there. */
function blocksOf(device, offset, {bytes, address}) {
	const blocks = [];
	for (let at = 0; at < bytes; at += BLOCK) {
		const zone = device.zone(address + at), {content, write, index, torn} = zone.read((address + at) / BLOCK - zone.first);
		const carried = device.facts.records[content]?.carries ?? false;
		blocks.push({offset: offset + at, address: address + at, content, write, index, carried, torn: torn ?? false});
	}
	return blocks;
}

/* ---- the mount and the cut ---- */

/* What a mount finds on a device after a cut: {superblock, records, bodies, tree}; null: no superblock. */
function mount(device) {
	const superblock = newestSuperblock(device);
	if (!superblock) return null;
	const records = recordsToReplay(device, superblock), tree = treeOf(device.facts, superblock.generation);
	const bodies = records.flatMap(({record, address}) => record.bodies.map((body) => ({body, address})))
		.filter(({body}) => body.number > superblock.log_number).sort((a, b) => a.body.number - b.body.number);
	tree?.finishIntents();
	for (const {body, address} of bodies) tree?.replay(body, address);
	return {superblock, records, bodies, tree};
}

/* The promises before the cut, from the state of the model: the generation and the log record that must survive. */
function promised(state) {
	const generation = state.superblock?.generation ?? 0;
	return {generation, log_sequence: replayable(state).at(-1)?.log_sequence ?? state.superblock?.log_sequence ?? 0};
}

/*
 * Cuts the power after the first `position` events of a trace; the seed determines the outcome. Returns {promised, flight,
 * fates, device, mounted, kept}; `kept`: the mount finds everything that was promised.
 */
function cutHere(trace, state, position, seed) {
	const device = new Device(trace).play(position), before = promised(state);
	if (device.lacking) throw new Error(`The data lacks the bytes that the write of event ${device.lacking} wrote.`);
	const fates = device.crash(seed), mounted = mount(device);
	const last = mounted ? mounted.superblock.log_sequence + mounted.records.length : 0;
	const kept = mounted !== null && mounted.superblock.generation >= before.generation && last >= before.log_sequence;
	return {promised: before, flight: device.flight, fates, device, mounted, kept};
}
