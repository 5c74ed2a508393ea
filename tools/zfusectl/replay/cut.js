// SPDX-License-Identifier: MIT
/*
 * Simulates a power cut in a run: docs/trace.md, "Cut here".
 *
 *      device of an instant --crash(seed)--> device that is found --mount() in recovery.js--> superblock, records, names
 *
 * The fault model and the order of its random draws are those of src/sim/crash.c, which `zfusectl lab crash` runs: the same
 * seed gives the same outcome in both. The page does not have the data itself; trace.facts tells what the bytes mean
 * (tools/zfusectl/lab/facts.h). This file uses no DOM.
 */
"use strict";

const BLOCK = 4096, SECTORS = 8;
const ZEROES = 0, GARBAGE = 1; // contents
const IN_FLIGHT = Infinity; // the stamp of a write that has not completed: no flush covers it

/* SplitMix64, as src/sim/rng.c. */
class Random {
	constructor(seed) { this.state = BigInt.asUintN(64, BigInt(seed)); }

	next() {
		this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
		let z = this.state;
		z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
		z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
		return z ^ (z >> 31n);
	}

	below(limit) { return Number(this.next() % BigInt(limit)); }
	chance(percent) { return this.below(100) < percent; }
	mood() { return ["all", "none", "dice"][this.below(3)]; }
}

/* The facts of a page, with maps for looking them up. */
class Facts {
	constructor(facts) {
		Object.assign(this, facts);
		this.lying = new Map(); // block of the device -> content
		for (const [address, ...contents] of facts.lay)
			contents.forEach((content, i) => this.lying.set(address / BLOCK + i, content));
		this.written = new Map(facts.writes.map(([sequence, ...contents]) => [sequence, contents]));
		this.bySectors = new Map(facts.contents.map((sectors, content) => [sectors.join(), content]));
	}

	/* The number of the content with these sectors. A torn block may have a new content, which gets a new number. */
	contentOf(sectors) {
		const key = sectors.join(), known = this.bySectors.get(key);
		if (known !== undefined) return known;
		this.bySectors.set(key, this.contents.length);
		return this.contents.push(sectors) - 1;
	}
}

/* ---- the device ---- */

/*
 * A zone: its write pointer (bytes from its start), and its blocks by number. `now` has the versions of a block that were
 * written in this life of the zone, newest first: {content, write, index, stamp}. A version is the block `index` of the write
 * that event `write` submitted. It is durable if a flush was submitted after event `stamp`. `old` has the block's newest
 * version of the previous life. The contents at the beginning of the run are in neither map, but in the facts: they are
 * valid for blocks below `lay`, and after a reset, as the previous life, for blocks below `oldLay`.
 */
class Zone {
	constructor(facts, header, number) {
		const [written, resets] = facts.zones[number];
		this.facts = facts;
		this.first = (number * header.zone_size) / BLOCK;
		this.conventional = number < header.conventional;
		this.capacity = header.zone_capacity;
		this.blocks = header.zone_size / BLOCK;
		Object.assign(this, {number, resets, wp: this.conventional ? 0 : written, floor: written, now: new Map(), old: new Map()});
		this.lay = written / BLOCK;
		this.oldLay = 0;
	}

	lying(i) { return {content: this.facts.lying.get(this.first + i) ?? ZEROES, write: 0, index: 0, stamp: 0}; }

	versions(i) {
		const written = this.now.get(i);
		if (written) return written;
		if (this.conventional) return this.facts.lying.has(this.first + i) ? [this.lying(i)] : null;
		return i < this.lay ? [this.lying(i)] : null;
	}

	former(i) { return this.old.get(i) ?? (i < this.oldLay ? this.lying(i) : null); }

	/* The version that a read returns. */
	read(i) { return this.versions(i)?.[0] ?? this.former(i) ?? {content: ZEROES, write: 0, index: 0}; }

	settle(i, version) {
		if (version) this.now.set(i, [{...version, stamp: 0}]);
		else this.now.delete(i);
	}

	reset() {
		for (const [i, [newest]] of this.now) this.old.set(i, newest);
		this.oldLay = Math.max(this.oldLay, this.lay);
		Object.assign(this, {lay: 0, floor: 0, wp: 0, resets: this.resets + 1, now: new Map()});
	}

	finish() { Object.assign(this, {floor: this.capacity, wp: this.capacity}); }

	get full() { return !this.conventional && this.wp === this.capacity; }
	get active() { return !this.conventional && this.wp > 0 && this.wp < this.capacity; }
	/* The blocks that were written in this life, by number, from `first` on. */
	written(first) { return [...this.now.keys()].filter((i) => i >= first).sort((a, b) => a - b); }
}

const isWrite = ({command}) => command === "append" || command === "write" || command === "zeroes";
const isAtPointer = ({command}) => command === "write" || command === "zeroes";

class Device {
	constructor(trace) {
		this.trace = trace;
		this.header = trace.header;
		this.facts = trace.facts;
		this.flushed = 0;
		this.lacking = null; // the first write whose bytes the data does not have
		this.flight = []; // commands in flight, by submission: {event, executed}
		this.zones = this.facts.zones.map((_, number) => new Zone(this.facts, this.header, number));
	}

	zone(address) { return this.zones[this.trace.zoneOf(address)]; }
	isDurable(version) { return version !== undefined && version.stamp <= this.flushed; }

	/* The state after the first `position` events. */
	play(position) {
		const flying = new Map();
		for (let i = 0; i < position; i++) {
			const event = this.trace.event(i);
			if (event.event === "command_submitted" && event.command !== "read") flying.set(event.sequence, event);
			if (event.event !== "command_completed" || !flying.has(event.submitted)) continue;
			if (event.result === 0) this.complete(flying.get(event.submitted), event);
			flying.delete(event.submitted);
		}
		for (const event of flying.values()) this.flight.push(this.flightOf(event));
		return this;
	}

	complete(submitted, event) {
		const zone = this.zone(event.address);
		if (event.command === "flush") this.flushed = Math.max(this.flushed, submitted.sequence);
		if (event.command === "reset") zone.reset();
		if (event.command === "finish") zone.finish();
		if (!isWrite(event)) return;
		const isDurable = submitted.fua || !this.facts.device.volatile_cache;
		this.land(submitted, event.address, isDurable ? 0 : event.sequence);
		if (!zone.conventional) zone.wp = Math.max(zone.wp, event.address + event.bytes - zone.first * BLOCK);
	}

	/*
	 * A command in flight. If the write pointer is beyond the place where a write later lands, then a write behind it has
	 * completed. So the device has already carried out this write, and its place is known.
	 */
	flightOf(event) {
		const zone = this.zone(event.address), at = this.trace.partner[event.index];
		const completed = at < 0 ? null : this.trace.event(at);
		const executed = isWrite(event) && !zone.conventional && completed?.result === 0 &&
			completed.address - zone.first * BLOCK < zone.wp;
		if (executed) this.land(event, completed.address, IN_FLIGHT);
		return {event, executed};
	}

	land(event, address, stamp) {
		const zone = this.zone(address), contents = this.facts.written.get(event.sequence);
		if (!contents && event.command !== "zeroes") this.lacking ??= event.sequence;
		const first = address / BLOCK - zone.first;
		for (let index = 0; index < event.bytes / BLOCK; index++) {
			const version = {content: contents?.[index] ?? ZEROES, write: event.sequence, index, stamp};
			const before = zone.conventional ? this.undecided(zone, first + index) : [];
			zone.now.set(first + index, [version, ...before]);
		}
	}

	/* The versions that a block may have after a cut: from the newest one down to the newest durable one. */
	undecided(zone, i) {
		const versions = zone.versions(i) ?? [], durable = versions.findIndex((version) => this.isDurable(version));
		return durable < 0 ? versions : versions.slice(0, durable + 1);
	}

	/* ---- carrying out commands in flight ---- */

	/* Carries out a command. A write at the write pointer cannot overtake earlier ones in its zone, so these come first. */
	execute(i) {
		const {event} = this.flight[i];
		if (isAtPointer(event))
			for (const earlier of this.flight.slice(0, i))
				if (isAtPointer(earlier.event) && this.zone(earlier.event.address) === this.zone(event.address)) this.carryOut(earlier);
		this.carryOut(this.flight[i]);
	}

	carryOut(flight) {
		const {event} = flight, zone = this.zone(event.address);
		if (flight.executed) return;
		flight.executed = true;
		if (event.command === "reset" && !zone.conventional) zone.reset();
		if (event.command === "finish" && !zone.conventional) zone.finish();
		if (!isWrite(event)) return;
		const address = this.advance(zone, event);
		if (address === null) flight.refused = true;
		else this.land(event, address, IN_FLIGHT);
	}

	/* The address to which the write goes; null: the device refuses the write (src/io/zone_rules.c). */
	advance(zone, {command, address, bytes}) {
		const start = zone.first * BLOCK, {append_limit: most, max_active: active} = this.facts.device;
		const at = command === "append" ? zone.wp : address - start;
		if (command === "append" && (bytes > most || zone.conventional || address !== start)) return null;
		if (zone.conventional) return at + bytes <= zone.capacity ? address : null;
		if (at !== zone.wp || bytes > zone.capacity - zone.wp) return null;
		if (zone.wp === 0 && active && this.activeCount() >= active) return null;
		zone.wp += bytes;
		return start + at;
	}

	activeCount() { return this.zones.filter((zone) => zone.active).length; }

	/* ---- the cut ---- */

	/* Changes the device to its state after a cut. Returns [{zone, block, fate, ...}] for the blocks that were not durable. */
	crash(seed) {
		const random = new Random(seed);
		this.fates = [];
		this.executeSome(random);
		for (const zone of this.zones) {
			if (zone.conventional) this.crashConventional(random, zone);
			else if (zone.wp > 0) this.crashSequential(random, zone);
		}
		return this.fates;
	}

	executeSome(random) {
		const order = [];
		this.flight.forEach((_, i) => {
			const j = random.below(i + 1);
			order[i] = order[j];
			order[j] = i;
		});
		const mood = random.mood();
		for (const i of order) if (mood === "all" || (mood === "dice" && random.chance(50))) this.execute(i);
	}

	crashSequential(random, zone) {
		const wp = zone.wp / BLOCK, mood = random.mood(), mayShrink = this.mayShrink(zone);
		if (this.isSettled(zone, wp)) return;
		const pointer = drawPointer(random, mayShrink ? mood : "all", this.lowestPointer(zone, wp), wp);
		for (let i = 0; i < pointer; i++) this.settleBlock(random, mood, zone, i);
		for (const i of zone.written(pointer)) this.loseBlock(random, zone, i);
		zone.floor = zone.wp = pointer * BLOCK;
	}

	/* Whether the write pointer may move back. A full zone would become active then, and a device allows only so many. */
	mayShrink(zone) {
		const most = this.facts.device.max_active;
		return !zone.full || !most || this.activeCount() < most;
	}

	isSettled(zone, wp) {
		for (let i = 0; i < wp; i++) if (!this.isDurable(zone.versions(i)?.[0])) return false;
		return true;
	}

	lowestPointer(zone, wp) {
		const lowest = zone.floor / BLOCK;
		for (let i = wp; i > lowest; i--) if (this.isDurable(zone.versions(i - 1)?.[0])) return i;
		return lowest;
	}

	settleBlock(random, mood, zone, i) {
		const written = zone.versions(i)?.[0];
		if (this.isDurable(written)) return;
		const found = mood === "all" && written ? written : this.drawBlock(random, written, zone.former(i));
		this.note(zone, i, written, found);
		zone.settle(i, found);
	}

	/* Loses a block above the write pointer. A read may still return its content. */
	loseBlock(random, zone, i) {
		const [written] = zone.versions(i);
		if (random.chance(50)) zone.old.set(i, written);
		this.note(zone, i, written, null);
		zone.settle(i, null);
	}

	drawBlock(random, written, old) {
		const zeroes = {content: ZEROES, write: 0, index: 0}, garbage = {content: GARBAGE, write: 0, index: 0};
		const loss = [old ?? zeroes, garbage, zeroes, written ?? zeroes][random.below(4)];
		return !written || random.chance(75) ? loss : this.tear(random, written, loss);
	}

	tear(random, a, b) {
		const sectors = [...this.facts.contents[a.content]], others = this.facts.contents[b.content];
		for (let i = 0; i < SECTORS; i++) if (random.chance(50)) sectors[i] = others[i];
		const content = this.facts.contentOf(sectors);
		return [a, b].find((whole) => whole.content === content) ?? {content, write: 0, index: 0, torn: true};
	}

	crashConventional(random, zone) {
		const mood = random.mood();
		for (const i of zone.written(0)) {
			const [newest] = zone.versions(i);
			if (this.isDurable(newest)) continue;
			const found = this.drawVersion(random, mood, zone, i);
			this.note(zone, i, newest, found);
			zone.settle(i, found);
		}
	}

	drawVersion(random, mood, zone, i) {
		const versions = this.undecided(zone, i).slice(0, 16);
		if (versions.length < 16 && !this.isDurable(versions.at(-1))) versions.push({content: ZEROES, write: 0, index: 0});
		const a = versions[random.below(versions.length)], b = versions[random.below(versions.length)];
		if (mood === "all") return versions[0];
		if (mood === "none") return versions.at(-1);
		return random.chance(50) ? a : this.tear(random, a, b);
	}

	note(zone, block, written, found) {
		if (!written) return;
		const fate = !found ? "behind the pointer" : found.content === written.content ? "as written" : found.torn ? "torn" :
			found.content === ZEROES ? "zeroes" : found.content === GARBAGE ? "garbage" : "as it was before";
		this.fates.push({zone: zone.number, block, write: written.write, index: written.index, fate});
	}
}

function drawPointer(random, mood, lowest, wp) {
	if (mood === "all") return wp;
	return mood === "none" ? lowest : lowest + random.below(wp - lowest + 1);
}
