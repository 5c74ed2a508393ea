// SPDX-License-Identifier: MIT
/*
 * The contents of a trace: its events (Trace), and the state of the filesystem after each of them (Model).
 *
 * This file uses no DOM, no clock and no random numbers, so any engine runs it. The page draws the state, and the tests
 * compare the state with filesystems. docs/trace.md explains the events.
 */
"use strict";

const WORD = 2 ** 32;
const RECORD = {bytes: 64, time: 8, thread: 16, event: 20, payload: 24};
const readers = {
	signed: (view, at) => view.getInt32(at + 4, true) * WORD + view.getUint32(at, true),
	flag: (view, at) => view.getUint8(at) !== 0,
	text: (view, at, size) => {
		const bytes = new Uint8Array(view.buffer, at, size);
		return String.fromCharCode(...bytes).replace(/\0.*$/s, "");
	},
};
const unsigned = {
	8: (view, at) => view.getUint32(at + 4, true) * WORD + view.getUint32(at, true),
	4: (view, at) => view.getUint32(at, true),
	1: (view, at) => view.getUint8(at),
};

/* The events of a trace. An event is identified by its index, from 0 on, and decoded on demand. */
class Trace {
	/* `data`: {header, events, names} (zfusectl writes it); `buffer`: the records, by sequence. */
	constructor(data, buffer) {
		this.header = data.header;
		this.names = data.names;
		this.facts = data.facts ? new Facts(data.facts) : null; // cut.js: the meaning of the bytes
		this.kinds = new Map(data.events.map((kind) => [kind.number, kind]));
		this.view = new DataView(buffer);
		this.count = Math.floor(buffer.byteLength / RECORD.bytes);
		this.link();
	}

	event(index) {
		const at = index * RECORD.bytes, view = this.view;
		const number = view.getUint16(at + RECORD.event, true);
		const kind = this.kinds.get(number);
		const event = {
			index,
			sequence: unsigned[8](view, at),
			time: unsigned[8](view, at + RECORD.time),
			thread: view.getUint32(at + RECORD.thread, true),
			event: kind ? kind.name : `unknown ${number}`,
		};
		let from = at + RECORD.payload;
		for (const field of kind ? kind.fields : []) {
			event[field.name] = this.value(field, from);
			from += field.size;
		}
		if (event.purpose === "zone") event.purpose = PURPOSES[this.purposes[index]];
		return event;
	}

	value(field, at) {
		const read = readers[field.kind] ?? unsigned[field.size];
		const value = read(this.view, at, field.size), names = this.names[field.kind];
		return names ? names[value] ?? "unknown" : value;
	}

	/* The event's entry in the table of events: {number, name, text, fields}. */
	kind(event) { return this.kinds.get(this.view.getUint16(event.index * RECORD.bytes + RECORD.event, true)); }

	time(index) { return unsigned[8](this.view, index * RECORD.bytes + RECORD.time); }

	sequence(index) { return unsigned[8](this.view, index * RECORD.bytes); }

	/* -1: the event with this sequence is not in the trace. */
	indexOf(sequence) {
		let low = 0, high = Math.min(this.count, sequence) - 1;
		while (low <= high) {
			/* Where nothing is missing, the first guess is right. */
			const middle = this.sequence(high) === sequence ? high : (low + high) >> 1;
			const found = this.sequence(middle);
			if (found === sequence) return middle;
			if (found < sequence) low = middle + 1;
			else high = middle - 1;
		}
		return -1;
	}

	zoneOf(address) { return Math.floor(address / this.header.zone_size); }

	/* How many events before this one were dropped, or not written yet. */
	missingBefore(index) { return Math.max(0, this.sequence(index) - index - 1); }

	/*
	 * Links events that belong together, by index; -1: there is none. partner[] of a submission is its completion, and of
	 * an operation's beginning its end; the reverse holds, too. cause[] of a submission is the operation that its thread
	 * was in. purposes[] is the purpose of a command, as an index in PURPOSES, for commands whose purpose in the trace is
	 * "zone": it follows from the zone's role.
	 */
	link() {
		this.partner = new Int32Array(this.count).fill(-1);
		this.cause = new Int32Array(this.count).fill(-1);
		this.purposes = new Uint8Array(this.count);
		const open = new Map(); // thread -> the operations that it is in
		const roles = new Map(); // zone -> its role
		for (let i = 0; i < this.count; i++) {
			const event = this.event(i), begun = this.indexOf(event.began ?? event.submitted ?? 0);
			const operations = open.get(event.thread) ?? [];
			open.set(event.thread, operations);
			if (event.event === "operation_began") operations.push(i);
			if (event.event === "operation_ended" && operations.at(-1) === begun) operations.pop();
			if (event.event === "zone" || event.event === "zone_role") roles.set(this.zoneOf(event.address), event.role);
			if (event.event === "command_submitted") {
				this.cause[i] = operations.at(-1) ?? -1;
				this.purposes[i] = PURPOSES.indexOf(this.purposeOf(event, roles.get(this.zoneOf(event.address))));
			}
			if (begun < 0 || !/^(operation_ended|command_completed)$/.test(event.event)) continue;
			this.partner[i] = begun;
			this.partner[begun] = i;
			this.purposes[i] = this.purposes[begun];
		}
	}

	/* The purpose of a command. A flush is for all zones. Zones of the log have no nodes, so an operation reads data there. */
	purposeOf({command, index}, role) {
		if (command === "flush") return "zone";
		const cause = this.cause[index] < 0 ? "" : this.event(this.cause[index]).operation;
		return role === "log" && command === "read" && cause ? "data" : PURPOSE_OF_ROLE[role] ?? "zone";
	}
}

/* The purpose of a command to a zone, by the zone's role. */
const PURPOSE_OF_ROLE = {super: "superblock", meta: "nodes", log: "log", hot: "data", cold: "data", overwrite: "data"};
const PURPOSES = ["zone", ...new Set(Object.values(PURPOSE_OF_ROLE))];

const WRITING = ["append", "write", "zeroes"];

/*
 * The state after the first `position` events. put() makes each change, and notes the previous value. So the state can move
 * backward and forward, and is stored only once.
 */
class Model {
	constructor(trace) {
		this.trace = trace;
		this.position = 0;
		this.misfits = new Map(); // index of an event -> what it contradicts
		this.undo = [];
		this.marks = []; // for each event that was applied: the length of `undo` before it
		this.state = {
			zones: new Map(), // number -> {role, written, live, resets, submissions, victim, pieces, holes}
			commands: new Map(), // in flight: sequence -> its submission, with its order in its zone
			operations: new Map(), // under way: sequence -> its beginning
			inodes: new Map(), // inode -> offset -> {bytes, address, type}
			records: new Map(), // of the log: log_sequence -> log_appended
			ring: new Map(), // superblocks that stand: generation -> committed
			transactions: new Map(), // generation -> {joins, items, nodes, holes, frozen, trees, stream, committed}
			roots: new Map(), // tree -> address of the newest root that was sealed
			frozen: null, // the transaction whose nodes are written now
			superblock: null, // the event of the newest commit
			sent: new Map(), // purpose -> bytes written to the device
			done: new Map(), // command -> how many have completed well
			ended_operations: 0, most_in_flight: 0,
			written: 0, // bytes that programs wrote
			moved: 0, dropped: 0, replayed: 0, // blocks, blocks, bodies
			latency: 0, // of the last operation that ended, by the clock of the trace
			ended: null,
		};
	}

	seek(position) {
		const to = Math.max(0, Math.min(position, this.trace.count));
		while (this.position < to) this.forward();
		while (this.position > to) this.back();
		return this.state;
	}

	forward() {
		const event = this.trace.event(this.position);
		this.marks.push(this.undo.length);
		handlers[event.event]?.call(this, event, this.state);
		this.position++;
	}

	back() {
		const to = this.marks.pop();
		while (this.undo.length > to) {
			const old = this.undo.pop(), key = this.undo.pop();
			assign(this.undo.pop(), key, old);
		}
		this.position--;
	}

	put(target, key, value) {
		this.undo.push(target, key, target instanceof Map ? target.get(key) : target[key]);
		assign(target, key, value);
		return value;
	}

	add(target, key, value) {
		const before = target instanceof Map ? target.get(key) : target[key];
		this.put(target, key, (before ?? 0) + value);
	}

	expect(event, isSo, text) {
		if (!isSo) this.misfits.set(event.index, text);
	}

	/* ---- finding, or making ---- */

	zone(address) {
		const number = this.trace.zoneOf(address);
		return this.state.zones.get(number) ?? this.put(this.state.zones, number, {
			number, role: "none", written: 0, live: 0, resets: 0, submissions: 0, victim: false,
			pieces: new Map(), // what was written since the last reset: address -> {bytes, purpose, order, ...}
			holes: new Map(), // address -> bytes
		});
	}

	transaction(generation) {
		return this.state.transactions.get(generation) ?? this.put(this.state.transactions, generation, {
			generation, joins: 0, items: 0, nodes: 0, holes: 0, frozen: false, trees: new Map(), committed: null,
			stream: new Map(), // what it writes of metadata: address -> node_sealed or hole_written
		});
	}

	/* The changes of a tree in a transaction: the number of nodes sealed, and the root before and after the transaction. */
	tree({generation, tree}) {
		const {trees} = this.transaction(generation);
		return trees.get(tree) ?? this.put(trees, tree, {nodes: 0, before: null, root: null});
	}

	extents(inode) {
		return this.state.inodes.get(inode) ?? this.put(this.state.inodes, inode, new Map());
	}

	/* ---- commands ---- */

	/* A write has landed: moves the write pointer, and notes the piece. */
	landed(event, zone, order) {
		const end = event.address + event.bytes - zone.number * this.trace.header.zone_size;
		this.put(zone, "written", Math.max(zone.written, end));
		this.put(zone.pieces, event.address, {...event, order});
		this.add(this.state.sent, event.purpose, event.bytes);
	}

	/* A zone was reset: its pieces, log records and superblocks are gone. */
	emptied(zone) {
		const empty = {written: 0, submissions: 0, victim: false, pieces: new Map(), holes: new Map()};
		for (const [key, value] of Object.entries(empty)) this.put(zone, key, value);
		for (const map of [this.state.ring, this.state.records])
			for (const [key, event] of map)
				if (this.trace.zoneOf(event.address) === zone.number) this.put(map, key, undefined);
	}

	/* The completion of the command that an event names; null if the trace has none before it. */
	completion(event) {
		const submitted = this.trace.indexOf(event.submitted);
		const completed = submitted < 0 ? -1 : this.trace.partner[submitted];
		return completed < 0 || completed > event.index ? null : this.trace.event(completed);
	}

	/* Checks that the bytes of an event lie where the command that it names has written. Returns that completion, or null. */
	liesIn(event, address, bytes) {
		const command = this.completion(event);
		if (this.trace.indexOf(event.submitted) >= 0)
			this.expect(event, command?.result === 0, "its command has not completed");
		if (command)
			this.expect(event, command.address <= address && address + bytes <= command.address + command.bytes,
				"it is not where its command landed");
		return command;
	}
}

function assign(target, key, value) {
	if (!(target instanceof Map)) target[key] = value;
	else if (value === undefined) target.delete(key);
	else target.set(key, value);
}

/* The change that each event makes to the state. Events that change nothing are left out. `this` is the model. */
const handlers = {
	dropped(event, state) { this.add(state, "dropped", event.count); },
	ended(event, state) {
		this.put(state, "ended", event);
		this.expect(event, event.index === this.trace.count - 1, "something follows");
	},

	operation_began(event, state) { this.put(state.operations, event.sequence, event); },
	operation_ended(event, state) {
		const began = state.operations.get(event.began);
		this.expect(event, began || event.began === 0, "no such operation has begun");
		this.expect(event, !began || began.operation === event.operation, "another operation began");
		if (began) {
			this.put(state.operations, event.began, undefined);
			this.put(state, "latency", event.time - began.time);
			this.add(state, "ended_operations", 1);
		}
		if (event.operation === "write" && event.result > 0) this.add(state, "written", event.result);
	},

	command_submitted(event, state) {
		const zone = this.zone(event.address);
		if (WRITING.includes(event.command)) this.add(zone, "submissions", 1);
		this.put(state.commands, event.sequence, {...event, order: zone.submissions});
		if (state.commands.size > state.most_in_flight) this.put(state, "most_in_flight", state.commands.size);
	},
	command_completed(event, state) {
		const submitted = state.commands.get(event.submitted), zone = this.zone(event.address);
		this.expect(event, submitted || event.submitted === 0, "no such command was submitted");
		if (submitted) {
			const same = ["command", "bytes", "purpose", "fua"].every((name) => submitted[name] === event[name]);
			this.expect(event, same && this.trace.zoneOf(submitted.address) === zone.number, "another command was submitted");
			this.put(state.commands, event.submitted, undefined);
		}
		if (event.result !== 0) return;
		this.add(state.done, event.command, 1);
		if (WRITING.includes(event.command)) this.landed(event, zone, submitted?.order ?? 0);
		if (event.command === "finish") this.put(zone, "written", this.trace.header.zone_capacity);
		if (event.command === "reset") this.emptied(zone);
	},

	zone(event) {
		const zone = this.zone(event.address);
		for (const name of ["role", "written", "live", "resets"]) this.put(zone, name, event[name]);
	},
	zone_role(event) {
		const zone = this.zone(event.address);
		this.expect(event, zone.role === event.before, `the role was ${zone.role}`);
		this.put(zone, "role", event.role);
	},
	zone_live(event) {
		this.put(this.zone(event.address), "live", event.live);
		this.expect(event, event.live <= this.trace.header.zone_capacity, "more than a zone has");
	},
	zone_reset(event) {
		const zone = this.zone(event.address);
		// A conventional zone has no write pointer, so no command resets it.
		const told = zone.number < this.trace.header.conventional || zone.written === 0;
		this.expect(event, event.result < 0 || told, "the device was not told to");
		this.expect(event, zone.live === 0, `${zone.live} bytes are live`);
		this.put(zone, "resets", event.resets);
	},

	extent_fixed(event) {
		const command = this.liesIn(event, event.address, event.bytes);
		const piece = command && this.zone(event.address).pieces.get(command.address);
		if (piece) this.put(piece, "inode", event.inode);
	},
	extent_set(event) {
		const {bytes, address, type} = event;
		this.put(this.extents(event.inode), event.offset, {bytes, address, type});
	},
	extent_removed(event) { this.put(this.extents(event.inode), event.offset, undefined); },

	transaction_joined(event) {
		const transaction = this.transaction(event.generation);
		this.add(transaction, "joins", 1);
		this.add(transaction, "items", event.items);
	},
	transaction_frozen(event, state) {
		this.put(this.transaction(event.generation), "frozen", true);
		this.put(state, "frozen", this.transaction(event.generation));
	},
	node_sealed(event) {
		const transaction = this.transaction(event.generation);
		this.add(transaction, "nodes", 1);
		this.add(this.tree(event), "nodes", 1);
		this.put(transaction.stream, event.address, event);
	},
	tree_sealed(event, state) {
		this.put(this.tree(event), "before", state.roots.get(event.tree) ?? null);
		this.put(this.tree(event), "root", event.address);
		this.put(state.roots, event.tree, event.address);
	},
	hole_written(event, state) {
		this.put(this.zone(event.address).holes, event.address, event.bytes);
		if (!state.frozen) return;
		this.add(state.frozen, "holes", 1);
		this.put(state.frozen.stream, event.address, event);
	},
	committed(event, state) {
		const newest = state.superblock;
		this.expect(event, this.trace.zoneOf(event.address) < 2, "no place for a superblock");
		this.expect(event, !newest || newest.generation < event.generation, "not newer");
		this.expect(event, (state.roots.get("root") ?? event.root) === event.root, "another root was sealed");
		this.put(this.transaction(event.generation), "committed", event);
		this.put(state.ring, event.generation, event);
		this.put(state, "superblock", event);
		this.put(state, "frozen", null);
	},

	log_appended(event, state) {
		this.expect(event, /^(log|hot)$/.test(this.zone(event.address).role), "no zone of the log");
		this.liesIn(event, event.address, event.bytes);
		this.put(state.records, event.log_sequence, event);
	},
	log_replayed(event, state) { this.add(state, "replayed", 1); },

	victim_chosen(event) { this.put(this.zone(event.address), "victim", true); },
	block_moved(event, state) {
		this.liesIn(event, event.to, this.trace.header.block_size);
		this.add(state, "moved", 1);
	},
};

/* ---- what follows from the state ---- */

const sum = (values) => [...values].reduce((a, b) => a + b, 0);

/* Bytes written to the device for each byte that programs wrote; null before programs have written any. */
const amplification = (state) => (state.written ? sum(state.sent.values()) / state.written : null);

function emptyZones(state, header) {
	return header.zone_count - [...state.zones.values()].filter((zone) => zone.written > 0).length;
}

/* The extents of an inode: [{offset, bytes, address, type}], by offset. */
function extentsOf(state, inode) {
	const extents = [...(state.inodes.get(inode) ?? [])].map(([offset, extent]) => ({offset, ...extent}));
	return extents.sort((a, b) => a.offset - b.offset);
}

/* The records of the log that a mount would replay: from the first that the superblock does not cover, to a gap. */
function replayable(state) {
	const records = [];
	for (let next = (state.superblock?.log_sequence ?? 0) + 1; state.records.has(next); next++)
		records.push(state.records.get(next));
	return records;
}
