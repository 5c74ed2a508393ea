// SPDX-License-Identifier: MIT
/* Draws the state that the model has, and moves it: nothing here changes what is known. */
"use strict";

const $ = (id) => document.getElementById(id);
const LETTERS = {none: "", super: "S", meta: "M", log: "L", hot: "H", cold: "C", overwrite: "O"};
const COLOURS = {data: "hot", nodes: "meta", holes: "none", log: "log", superblock: "super", reclaim: "reclaim", zone: "faint"};
const number = (value) => value.toLocaleString("en");

let trace, model, samples, zoneNumbers;
let selected = {zone: 0, inode: 0};
let playing = null; // {since, from}: when and where it began
let drawn = {}; // what a press on a canvas hits

/* Whoever writes there is not disturbed. */
function show(id, value) {
	if (document.activeElement !== $(id)) $(id).value = value;
}

/* ---- reading what zfusectl has put into the page ---- */

async function inflate(text) {
	if (typeof DecompressionStream === "undefined")
		throw new Error("This browser is too old for this page: it has no DecompressionStream (since 2023 every browser has).");
	const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
	return new Response(stream).arrayBuffer();
}

/* Goes through all of it once: for the curves, and for the zones that there are. */
function survey() {
	const every = Math.max(1, Math.ceil(trace.count / 800));
	let slowest = 0;
	samples = [];
	for (let i = 0; i < trace.count; i++) {
		model.forward();
		slowest = Math.max(slowest, model.state.latency);
		if ((i + 1) % every && i + 1 < trace.count) continue;
		const {state} = model;
		samples.push({at: i, amplification: amplification(state), empty: emptyZones(state, trace.header), latency: slowest});
		slowest = 0;
	}
	const all = trace.header.zone_count <= ALL_ZONES ? [...Array(trace.header.zone_count).keys()] : [];
	zoneNumbers = [...new Set([...all, ...model.state.zones.keys()])].sort((a, b) => a - b).slice(0, ZONES_MAX);
}
const ALL_ZONES = 2000, ZONES_MAX = 100000; // more than that: those that the trace tells of

/* ---- canvases ---- */

/* The colours of page.css, as the theme has them. */
const palette = {};
function readPalette() {
	const style = getComputedStyle(document.documentElement);
	for (const name of ["back", "text", "faint", "line", "now", "reclaim", ...Object.keys(LETTERS)])
		palette[name] = style.getPropertyValue(`--${name}`).trim();
}

/* A canvas of this height, empty; sizes are those of CSS. */
function clear(id, height) {
	const canvas = $(id), ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 800;
	if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.style.height = `${height}px`;
	}
	const pen = canvas.getContext("2d");
	pen.setTransform(ratio, 0, 0, ratio, 0, 0);
	pen.clearRect(0, 0, width, height);
	pen.font = "11px system-ui, sans-serif";
	pen.textBaseline = "middle";
	return {pen, width, height};
}

function text(pen, colour, words, x, y, align = "left") {
	pen.fillStyle = colour;
	pen.textAlign = align;
	pen.fillText(words, x, y);
}

function box(pen, colour, x, y, width, height) {
	pen.fillStyle = colour;
	pen.fillRect(x, y, width, height);
}

function line(pen, colour, x1, y1, x2, y2, width = 1, dash = []) {
	pen.strokeStyle = colour;
	pen.lineWidth = width;
	pen.setLineDash(dash);
	pen.beginPath();
	pen.moveTo(x1, y1);
	pen.lineTo(x2, y2);
	pen.stroke();
	pen.setLineDash([]);
}

function hatch(pen, colour, x, y, width, height) {
	pen.save();
	pen.beginPath();
	pen.rect(x, y, width, height);
	pen.clip();
	for (let at = x - height; at < x + width; at += 4) line(pen, colour, at, y + height, at + height, y);
	pen.restore();
}

/* ---- the zones ---- */

/* How large a cell is, if there are so many: [zones, width, height, whether it has its number]. */
const CELLS = [[500, 54, 38, true], [ALL_ZONES, 26, 32, false], [Infinity, 14, 26, false]];

function inFlight(state) {
	const flying = new Map();
	for (const command of state.commands.values()) {
		const zone = trace.zoneOf(command.address);
		if (command.command !== "read" && command.command !== "flush") flying.set(zone, (flying.get(zone) ?? 0) + 1);
	}
	return flying;
}

function drawZone(pen, zone, cell, flying) {
	const [x, y, width, height, hasNumber] = cell, top = y + 14, tall = height - 19, long = width - 4;
	const {zone_capacity: capacity, zone_size: zoneSize} = trace.header;
	const role = zone?.role ?? "none", colour = palette[role] ?? palette.none;
	box(pen, palette.back, x, top, long, tall);
	if (zone?.written) {
		const scale = long / capacity, written = Math.min(long, Math.max(1, scale * zone.written));
		const live = role === "super" ? tall : Math.min(tall, (tall * zone.live) / zone.written);
		hatch(pen, colour, x, top, written, tall - live);
		box(pen, colour, x, top + tall - live, written, live);
		for (const [address, bytes] of zone.holes)
			box(pen, palette.text, x + scale * (address % zoneSize), top + tall, Math.max(1, scale * bytes), 3);
		line(pen, palette.text, x + written, top - 1, x + written, top + tall + 1, 1.5);
	}
	pen.strokeStyle = zone && zone.number === selected.zone ? palette.now : palette.line;
	pen.lineWidth = 1;
	pen.strokeRect(x + 0.5, top + 0.5, long - 1, tall - 1);
	text(pen, palette.text, LETTERS[role] ?? "?", x, y + 7);
	if (hasNumber) text(pen, palette.faint, cell[5], x + 12, y + 7);
	if (zone?.victim) text(pen, palette.now, "V", x + long - 22, y + 7);
	if (flying) text(pen, palette.now, hasNumber ? `↓${flying}` : "↓", x + long, y + 7, "right");
}

function drawMap(state) {
	const [, cellWidth, cellHeight, hasNumber] = CELLS.find(([zones]) => zoneNumbers.length <= zones);
	const columns = Math.max(1, Math.floor(($("map").clientWidth || 800) / cellWidth));
	const {pen} = clear("map", Math.max(1, Math.ceil(zoneNumbers.length / columns)) * cellHeight);
	const flying = inFlight(state);
	zoneNumbers.forEach((zone, i) => {
		const cell = [(i % columns) * cellWidth, Math.floor(i / columns) * cellHeight, cellWidth, cellHeight, hasNumber, zone];
		drawZone(pen, state.zones.get(zone) ?? {number: zone, role: "none", holes: []}, cell, flying.get(zone));
	});
	drawn.map = {columns, cellWidth, cellHeight};
	const roles = [...state.zones.values()].map((zone) => zone.role);
	const counts = Object.keys(LETTERS).map((role) => `${roles.filter((r) => r === role).length} ${role}`).slice(1);
	const empty = emptyZones(state, trace.header);
	$("map").setAttribute("aria-label", `${empty} zones of ${trace.header.zone_count} are empty; ${counts.join(", ")}`);
}

function drawZonesTable(state) {
	if (!$("zones-details").open) return;
	const known = zoneNumbers.filter((zone) => state.zones.has(zone)).slice(0, 500);
	rows("zones", ["zone", "role", "written", "live", "garbage", "holes", "resets"], known.map((number) => {
		const {role, written, live, holes, resets} = state.zones.get(number);
		return {cells: [number, role, size(written), size(live), size(Math.max(0, written - live)), holes.size, resets]};
	}));
}

/* ---- operations beside commands ---- */

const COLUMN = 12, LEFT = 84, BAR = 13, BARS = 5;
const RAIL_Y = {operation: 8, submitted: 95, completed: 150, files: 185, commit: 208, zones: 231};

/* What lasts: the beginnings of all that begin or end in these columns, or are `underWay` now. */
function bars(first, last, begins, underWay) {
	const found = new Set([...underWay.values()].map((event) => event.index));
	for (let i = first; i <= last; i++) {
		const name = trace.event(i).event;
		if (name === begins) found.add(i);
		else if (trace.partner[i] >= 0 && trace.event(trace.partner[i]).event === begins) found.add(Math.min(i, trace.partner[i]));
	}
	return [...found].sort((a, b) => a - b);
}

/* In the first row that is free: operations that last at once are below each other. */
function drawOperations(pen, first, last, x) {
	const free = [];
	for (const i of bars(first, last, "operation_began", model.state.operations)) {
		const end = trace.partner[i] < 0 ? last + 1 : trace.partner[i], event = trace.event(i);
		let row = free.findIndex((until) => until < i);
		if (row < 0 && free.length === BARS) continue;
		if (row < 0) row = free.length;
		free[row] = end;
		const from = Math.max(LEFT, x(i) - COLUMN / 2 + 1), y = RAIL_Y.operation + 8 + row * BAR;
		const wide = Math.max(COLUMN, x(end) + COLUMN / 2 - from);
		pen.globalAlpha = i >= model.position ? 0.4 : 1;
		box(pen, palette.line, from, y - 5, wide, BAR - 2);
		pen.save();
		pen.beginPath();
		pen.rect(from, y - 6, wide, BAR);
		pen.clip();
		text(pen, palette.text, event.operation + (event.inode ? ` ${event.inode}` : ""), from + 2, y);
		pen.restore();
	}
	pen.globalAlpha = 1;
}

function drawCommands(pen, first, last, x) {
	pen.save();
	pen.beginPath();
	pen.rect(LEFT, 0, pen.canvas.width, pen.canvas.height);
	pen.clip();
	for (const i of bars(first, last, "command_submitted", model.state.commands)) {
		const event = trace.event(i), end = trace.partner[i], colour = palette[COLOURS[event.purpose]] ?? palette.faint;
		const known = end >= 0 && end < model.position;
		pen.globalAlpha = i >= model.position ? 0.35 : 1;
		if (trace.cause[i] >= first) line(pen, palette.line, x(i), RAIL_Y.operation + 8, x(i), RAIL_Y.submitted, 1, [1, 2]);
		const [wide, dash] = [event.command === "append" ? 2.5 : 1.2, known ? [] : [4, 3]];
		line(pen, colour, x(i), RAIL_Y.submitted, x(end < 0 ? last + 1 : end), RAIL_Y.completed, wide, dash);
	}
	pen.restore();
}

function drawMarks(pen, first, last, x) {
	for (let i = first; i <= last; i++) {
		const event = trace.event(i), {rail, mark} = describe(event, trace);
		const colour = i === model.position - 1 ? palette.now : palette.text, y = RAIL_Y[rail];
		pen.globalAlpha = i >= model.position ? 0.35 : 1;
		if (rail !== "operation" || event.event === "thread") text(pen, colour, mark, x(i), y, "center");
		const fixed = event.submitted ? trace.indexOf(event.submitted) : -1;
		if (rail === "files" && fixed >= first && trace.partner[fixed] >= first)
			line(pen, palette.line, x(trace.partner[fixed]), RAIL_Y.completed + 6, x(i), y - 7);
	}
	pen.globalAlpha = 1;
}

function drawLanes() {
	const {pen, width, height} = clear("lanes", 245), columns = Math.floor((width - LEFT) / COLUMN);
	const first = Math.max(0, Math.min(model.position - Math.round(columns * 0.7), trace.count - columns));
	const last = Math.min(trace.count, first + columns) - 1;
	const x = (index) => LEFT + (index - first + 0.5) * COLUMN;
	for (const rail of RAILS) {
		text(pen, palette.faint, rail, 0, RAIL_Y[rail] + (rail === "operation" ? 8 : 0));
		if (rail !== "operation") line(pen, palette.line, LEFT, RAIL_Y[rail], width, RAIL_Y[rail], 0.5);
	}
	drawOperations(pen, first, last, x);
	drawCommands(pen, first, last, x);
	drawMarks(pen, first, last, x);
	if (model.position > 0) line(pen, palette.now, x(model.position - 1) + COLUMN / 2, 0, x(model.position - 1) + COLUMN / 2, height);
	drawn.lanes = {first, last}; // events
	const {operations, commands} = model.state;
	$("lanes").setAttribute("aria-label", `${operations.size} operations are under way, ${commands.size} commands in flight`);
}

/* The event in whose column this is. */
const columnAt = (x) => Math.min(drawn.lanes.last, drawn.lanes.first + Math.floor((x - LEFT) / COLUMN));

/* ---- one zone: submitted, and landed ---- */

function newestPieces(state, zone, room) {
	const flying = [...state.commands.values()].filter((c) => WRITING.includes(c.command) && trace.zoneOf(c.address) === zone.number);
	/* The last to complete: no more than a few were submitted later than any of them. */
	const pieces = [...zone.pieces.values()].slice(-16 * room).filter((piece) => piece.order > 0);
	return [...pieces, ...flying].sort((a, b) => a.order - b.order).slice(-room);
}

function drawPiece(pen, piece, x, y, wide, hasLanded) {
	const colour = palette[COLOURS[piece.purpose]] ?? palette.faint;
	pen.strokeStyle = colour;
	pen.lineWidth = 2;
	pen.setLineDash(hasLanded ? [] : [4, 3]);
	pen.strokeRect(x + 1, y, wide - 4, 30);
	pen.setLineDash([]);
	text(pen, palette.text, `${piece.order}`, x + 6, y + 10);
	text(pen, palette.faint, size(piece.bytes).replace(" ", ""), x + wide - 7, y + 10, "right");
	text(pen, palette.text, piece.inode ? `inode ${piece.inode}` : piece.purpose, x + 6, y + 22);
}

function drawStrip(state) {
	const {pen, width} = clear("strip", 142), wide = 84, room = Math.max(1, Math.floor((width - LEFT) / wide));
	const zone = state.zones.get(selected.zone);
	show("strip-zone", selected.zone);
	text(pen, palette.faint, "submitted", 0, 18);
	text(pen, palette.faint, "landed", 0, 108);
	const pieces = zone ? newestPieces(state, zone, room) : [];
	const landed = pieces.filter((piece) => zone.pieces.get(piece.address)?.submitted === piece.submitted && piece.submitted)
		.sort((a, b) => a.address - b.address);
	pieces.forEach((piece, i) => {
		const below = landed.indexOf(piece), colour = palette[COLOURS[piece.purpose]] ?? palette.faint;
		drawPiece(pen, piece, LEFT + i * wide, 3, wide, below >= 0);
		if (below < 0) return;
		line(pen, colour, LEFT + (i + 0.5) * wide, 34, LEFT + (below + 0.5) * wide, 92, below === i ? 1 : 3);
		drawPiece(pen, piece, LEFT + below * wide, 93, wide, true);
		text(pen, palette.faint, `+ 0x${(piece.address % trace.header.zone_size).toString(16)}`, LEFT + below * wide + 2, 133);
	});
	if (!pieces.length) text(pen, palette.faint, "The trace tells of no write to this zone since its last reset.", LEFT, 18);
	const orders = (list) => list.map((piece) => piece.order).join(", ");
	$("strip").setAttribute("aria-label", `Submitted: ${orders(pieces)}. Landed, by address: ${orders(landed)}.`);
}

/* ---- tables ---- */

/* list: [{cells, state}]; `state` is a class: now, past. */
function rows(id, heads, list) {
	const table = document.createElement("tbody");
	const head = table.insertRow();
	for (const name of heads) head.append(Object.assign(document.createElement("th"), {scope: "col", textContent: name}));
	for (const {cells, state} of list) {
		const row = table.insertRow();
		row.className = state ?? "";
		for (const cell of cells) row.insertCell().textContent = cell;
	}
	$(id).replaceChildren(table);
}

const LINES = 8;
const newest = (map, key) => [...map.values()].sort((a, b) => b[key] - a[key]).slice(0, LINES);

function drawLog(state) {
	const next = replayable(state), durable = state.superblock?.log_sequence ?? 0;
	$("log-said").textContent = `Records that a mount would replay: ${next.length}, those above number ${durable} up to the first gap.`;
	rows("log", ["record", "place", "bytes", "bodies", "data blocks"], newest(state.records, "log_sequence").map((e) => ({
		cells: [e.log_sequence, place(trace, e.address), size(e.bytes), e.bodies, e.data_blocks],
		state: next.includes(e) ? "now" : "past",
	})));
}

function drawRing(state) {
	rows("ring", ["generation", "place", "root", "log up to"], newest(state.ring, "generation").map((e) => ({
		cells: [e.generation, place(trace, e.address), place(trace, e.root), e.log_sequence],
		state: e === state.superblock ? "now" : "past",
	})));
}

const phase = (t) => (t.committed ? "durable" : t.frozen ? "frozen" : t.joins ? "running" : "");

function drawTransactions(state) {
	const transactions = newest(state.transactions, "generation");
	rows("transactions", ["generation", "is", "joins", "nodes", "holes"], transactions.map((t) => ({
		cells: [t.generation, phase(t), t.joins, t.nodes, t.holes],
		state: t.committed ? "past" : "now",
	})));
}

function drawTrees(state) {
	const transaction = newest(state.transactions, "generation").find((t) => t.trees.size);
	const at = (address) => (address === null ? "" : address ? place(trace, address) : "none");
	$("trees-said").textContent = transaction ? `Of transaction ${transaction.generation}, which is ${phase(transaction)}.` : "";
	rows("trees", ["tree", "nodes copied", "root before", "root after"], [...(transaction?.trees ?? [])].map(([name, tree]) => ({
		cells: [name, tree.nodes, at(tree.before), at(tree.root)],
		state: tree.root === null || tree.root !== tree.before ? "now" : "past",
	})));
}

function drawExtents(state) {
	const extents = extentsOf(state, selected.inode);
	show("inode", selected.inode || "");
	rows("extents", ["offset", "bytes", "type", "place", "submitted as"], extents.slice(0, 40).map((e) => {
		const zone = e.type === "data" && state.zones.get(trace.zoneOf(e.address)), piece = zone && zone.pieces.get(e.address);
		const at = e.type === "data" ? place(trace, e.address) : "";
		return {cells: [number(e.offset), number(e.bytes), e.type, at, piece?.order || ""]};
	}).concat(extents.length > 40 ? [{cells: [`and ${extents.length - 40} more`]}] : []));
}

/* ---- curves ---- */

const duration = (time) => (trace.header.clock ? `${number(time)} events` : `${(time / 1e6).toFixed(2)} ms`);
/* [name, in a sample, colour, in words] */
const CURVES = [
	["write amplification", "amplification", "log", (value) => value.toFixed(2)],
	["empty zones", "empty", "meta", number],
	["slowest operation", "latency", "hot", duration],
];

function drawCurves(state) {
	const tall = 56, {pen, width} = clear("curves", CURVES.length * tall), long = width - LEFT * 2;
	const x = (index) => LEFT * 2 + (index / Math.max(1, trace.count - 1)) * (long - 2);
	CURVES.forEach(([name, key, colour, say], i) => {
		const known = samples.filter((sample) => sample[key] !== null);
		const most = Math.max(1e-9, ...known.map((sample) => sample[key]));
		const y = (value) => (i + 1) * tall - 6 - (value / most) * (tall - 14);
		text(pen, palette.text, name, 0, i * tall + 16);
		text(pen, palette.faint, `at most ${known.length ? say(most) : "?"}`, 0, i * tall + 32);
		pen.strokeStyle = palette[colour];
		pen.lineWidth = 2;
		pen.beginPath();
		for (const sample of known) pen.lineTo(x(sample.at), y(sample[key]));
		pen.stroke();
		line(pen, palette.line, LEFT * 2, y(0), width, y(0));
	});
	if (model.position) line(pen, palette.now, x(model.position - 1), 0, x(model.position - 1), CURVES.length * tall);
	drawn.curves = {left: LEFT * 2, long};
	const now = amplification(state);
	$("curves").setAttribute("aria-label", `Now: write amplification ${now ? now.toFixed(2) : "not known"}, ` +
		`${emptyZones(state, trace.header)} empty zones, the last operation took ${duration(state.latency)}`);
}

/* ---- the step, in words ---- */

/* [[words, index]]: what this event is about, and what came of it. */
function relatives(event) {
	const index = event.index, partner = trace.partner[index], found = [];
	const submitted = event.event === "command_submitted" ? index : trace.indexOf(event.submitted ?? 0);
	const landed = submitted < 0 ? -1 : trace.partner[submitted];
	if (partner >= 0) found.push([partner < index ? "where it began" : "its end", partner]);
	if (submitted >= 0 && submitted !== index && submitted !== partner) found.push(["its submission", submitted]);
	if (landed >= 0 && landed !== index && landed !== partner) found.push(["its completion", landed]);
	if (submitted >= 0 && trace.cause[submitted] >= 0) found.push(["the operation that its thread was in", trace.cause[submitted]]);
	return found;
}

function explain(event) {
	const {text: sentence, document: file, section} = describe(event, trace), missing = trace.missingBefore(event.index);
	$("sentence").textContent = sentence;
	$("meaning").textContent = (trace.kind(event)?.text ?? "").replaceAll("`", "");
	$("why").textContent = `docs/${file}, “${section.replaceAll("`", "")}”`;
	const doubts = [];
	if (missing) doubts.push(`Of the events before this one ${number(missing)} are not in the trace: it may have been otherwise.`);
	if (model.misfits.has(event.index)) doubts.push(`This contradicts the events before: ${model.misfits.get(event.index)}.`);
	$("unknown").hidden = !doubts.length;
	$("unknown").textContent = doubts.join(" ");
	$("related").replaceChildren("Go to: ", ...relatives(event).map(([words, index]) => {
		const button = Object.assign(document.createElement("button"), {textContent: words});
		button.addEventListener("click", () => go(index + 1));
		return button;
	}));
	$("fields").replaceChildren(...Object.entries(event).filter(([name]) => name !== "index").flatMap(([name, value]) => [
		Object.assign(document.createElement("dt"), {textContent: name}),
		Object.assign(document.createElement("dd"), {textContent: name === "event" ? value : String(value)}),
	]));
}

function begin() {
	$("sentence").textContent = trace.count ? "Nothing has happened yet." : "The trace has no events.";
	for (const id of ["meaning", "why"]) $(id).textContent = "";
	$("unknown").hidden = true;
	for (const id of ["related", "fields"]) $(id).replaceChildren();
}

/* ---- moving ---- */

/* The zone and the inode that are shown: those of the newest event that has one, of the events passed. */
function choose(passed) {
	for (let i = Math.max(0, passed, model.position - 200); i < model.position; i++) select(trace.event(i));
}

function select(event) {
	const address = event.to ?? event.address;
	if (address !== undefined && !/^(committed|tree_sealed|zone)$/.test(event.event)) selected.zone = trace.zoneOf(address);
	if (event.inode && $("follow").checked) selected.inode = event.inode;
}

function draw() {
	const state = model.state;
	$("slider").value = model.position;
	$("position").textContent = `${number(model.position)} of ${number(trace.count)}`;
	for (const paint of [drawLanes, drawStrip, drawMap]) paint(state);
	/* Nobody reads faster, and laying out tables costs more than all the rest. */
	if (playing && performance.now() - drawn.tables < 250) return;
	drawn.tables = performance.now();
	for (const paint of [drawZonesTable, drawLog, drawRing, drawTransactions, drawTrees, drawExtents, drawCurves]) paint(state);
}

function go(position) {
	const before = model.position;
	model.seek(position);
	choose(model.position > before ? before : 0);
	if (model.position) explain(trace.event(model.position - 1));
	else begin();
	draw();
}

function step(by) {
	pause();
	go(model.position + by);
}

function pause() {
	playing = null;
	$("play").textContent = "Play";
	$("said").setAttribute("aria-live", "polite");
}

function play() {
	if (playing) {
		pause();
		return draw();
	}
	if (model.position >= trace.count) go(0);
	playing = {since: performance.now(), from: model.position};
	$("play").textContent = "Pause";
	/* Nobody can listen to so many. */
	$("said").setAttribute("aria-live", "off");
	requestAnimationFrame(frame);
}

function frame(now) {
	if (!playing) return;
	const to = playing.from + Math.floor(((now - playing.since) / 1000) * Number($("speed").value));
	if (to >= trace.count) pause();
	if (to > model.position) go(to);
	if (playing) requestAnimationFrame(frame);
}

/* The next event, in this direction, of which isIt is true. */
function find(by, isIt) {
	pause();
	for (let i = model.position - 1 + by; i >= 0 && i < trace.count; i += by) {
		if (!isIt(trace.event(i))) continue;
		$("found").textContent = "";
		return go(i + 1);
	}
	$("found").textContent = by > 0 ? "No more of these." : "None before.";
}

function search(by) {
	const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
	if (!words.length) return;
	/* A number is one only as a whole. */
	const patterns = words.map((word) => word.replace(/\W/g, "\\$&").replace(/\d$/, "$&\\b"));
	find(by, (event) => {
		const said = `${event.event} ${event.event.replaceAll("_", " ")} ${describe(event, trace).text}`.toLowerCase();
		return patterns.every((pattern) => new RegExp(`(^|\\W)${pattern}`).test(said));
	});
}

const same = (by) => () => {
	const name = model.position ? trace.event(model.position - 1).event : "";
	find(by, (event) => event.event === name);
};

const KEYS = {
	" ": play, ArrowRight: (e) => step(e.shiftKey ? 100 : 1), ArrowLeft: (e) => step(e.shiftKey ? -100 : -1),
	Home: () => step(-Infinity), End: () => step(Infinity), "]": same(1), "[": same(-1),
	c: () => find(1, (event) => event.event === "committed"), "/": () => $("search").focus(),
	x: cutPower, o: nextOutcome,
};

function onKey(event) {
	const key = KEYS[event.key];
	if (!key || event.ctrlKey || event.altKey || event.metaKey) return;
	if (event.target.matches("input:not([type=checkbox]), select, summary")) return;
	if (event.key === " " && event.target.matches("button, input")) return;
	event.preventDefault();
	key(event);
}

function onPress(id, act) {
	$(id).addEventListener("click", (event) => {
		const {left, top} = $(id).getBoundingClientRect();
		act(event.clientX - left, event.clientY - top, drawn[id]);
	});
}

function listen() {
	const buttons = {first: () => step(-Infinity), last: () => step(Infinity), previous: () => step(-1), next: () => step(1), play,
		"find-next": () => search(1), "find-previous": () => search(-1)};
	for (const [id, act] of Object.entries(buttons)) $(id).addEventListener("click", act);
	$("slider").addEventListener("input", () => { pause(); go(Number($("slider").value)); });
	$("speed").addEventListener("change", () => { if (playing) playing = {since: performance.now(), from: model.position}; });
	$("search").addEventListener("keydown", (event) => { if (event.key === "Enter") search(event.shiftKey ? -1 : 1); });
	$("inode").addEventListener("input", () => { $("follow").checked = false; selected.inode = Number($("inode").value); draw(); });
	$("strip-zone").addEventListener("input", () => { selected.zone = Number($("strip-zone").value); draw(); });
	$("zones-details").addEventListener("toggle", draw);
	onPress("lanes", (x) => { if (x > LEFT) step(columnAt(x) + 1 - model.position); });
	$("lanes").addEventListener("mousemove", ({offsetX: x}) => {
		$("lanes").title = x > LEFT && trace.count ? describe(trace.event(columnAt(x)), trace).text : "";
	});
	onPress("curves", (x, y, {left, long}) => step(Math.round(((x - left) / long) * trace.count) - model.position));
	onPress("map", (x, y, {columns, cellWidth, cellHeight}) => {
		const zone = zoneNumbers[Math.floor(y / cellHeight) * columns + Math.floor(x / cellWidth)];
		if (zone !== undefined) { selected.zone = zone; draw(); }
	});
	listenToCuts();
	document.addEventListener("keydown", onKey);
	const repaint = () => { readPalette(); draw(); };
	window.addEventListener("resize", repaint);
	for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", repaint);
}

/* ---- beginning ---- */

function about() {
	const {header} = trace, parts = [`zfuse ${header.program}`, `${number(trace.count)} events`,
		`${number(header.zone_count)} zones of ${size(header.zone_size)}, ${size(header.zone_capacity)} of which can be written`];
	if (header.conventional) parts.push(`${header.conventional} of them conventional`);
	if (header.workload) parts.push(`made by: ${header.workload}`);
	$("about").textContent = `${parts.join(" · ")}.`;
	const doubts = [], missing = trace.count ? trace.missingBefore(trace.count - 1) : 0;
	if (!model.state.ended) doubts.push("The trace has no end: it still grew, or its writer was killed.");
	if (missing) doubts.push(`${number(missing)} events are not in it, and what they changed is not known.`);
	if (model.misfits.size) doubts.push(`${number(model.misfits.size)} events contradict those before them.`);
	$("warning").hidden = !doubts.length;
	$("warning").textContent = doubts.join(" ");
}

function legend() {
	for (const [role, letter] of Object.entries(LETTERS).filter(([, l]) => l)) {
		const mark = Object.assign(document.createElement("i"), {textContent: letter});
		mark.style.background = `var(--${role})`;
		$("legend").append(mark, role);
	}
}

async function main() {
	try {
		trace = new Trace(JSON.parse($("trace").textContent), await inflate($("records").textContent.trim()));
		model = new Model(trace);
		survey();
	} catch (error) {
		$("warning").hidden = false;
		$("warning").textContent = error.message;
		return;
	}
	about();
	legend();
	readPalette();
	$("slider").max = trace.count;
	$("main").hidden = false;
	listen();
	/* page.html#812 is at that event, page.html#812/3 cuts there with that outcome. */
	const [, position = 0, outcome] = /^#(\d+)(?:\/(\d+))?$/.exec(location.hash) ?? [];
	go(Number(position));
	if (outcome) {
		$("outcome").value = outcome;
		cutPower();
	}
}

if (typeof document !== "undefined") main();
