// SPDX-License-Identifier: MIT
/* Draws the state of the model, and moves the model. Only the model interprets events. */
"use strict";

let trace, model, samples, zoneNumbers;
let mostAtOnce; // the most operations that run at the same time
let selected = {zone: 0, inode: 0};
let playing = null; // {since, from}: when and where it began
let drawn = {}; // places on the canvases, for clicks; for the lanes also the events that have a mark

/* ---- reading the data that zfusectl has put into the page ---- */

async function inflate(text) {
	if (typeof DecompressionStream === "undefined")
		throw new Error("This browser is too old for this page: it has no DecompressionStream (since 2023 every browser has).");
	const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
	return new Response(stream).arrayBuffer();
}

/* Goes through the whole trace once, to collect the samples of the curves and the numbers of the zones. */
function survey() {
	const every = Math.max(1, Math.ceil(trace.count / 800));
	let slowest = 0;
	samples = [];
	mostAtOnce = 1;
	for (let i = 0; i < trace.count; i++) {
		model.forward();
		mostAtOnce = Math.max(mostAtOnce, model.state.operations.size);
		slowest = Math.max(slowest, model.state.latency);
		if ((i + 1) % every && i + 1 < trace.count) continue;
		const {state} = model;
		samples.push({at: i, amplification: amplification(state), empty: emptyZones(state, trace.header), latency: slowest});
		slowest = 0;
	}
	const all = trace.header.zone_count <= ALL_ZONES ? [...Array(trace.header.zone_count).keys()] : [];
	zoneNumbers = [...new Set([...all, ...model.state.zones.keys()])].sort((a, b) => a - b).slice(0, ZONES_MAX);
}

/* ---- the step, in words ---- */

/* The events that belong to this one: [[words, index]]. */
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
	const related = relatives(event);
	$("related").replaceChildren(related.length ? "Go to: " : "", ...related.map(([words, index]) => {
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

/* Selects the zone and the inode to show: those of the newest event that has one, among the events that were passed. */
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
	/* Tables change at most four times a second: their layout costs more than everything else, and users read no faster. */
	if (playing && performance.now() - drawn.tables < 250) return;
	drawn.tables = performance.now();
	for (const paint of [drawZonesTable, drawLog, drawRing, drawTransactions, drawTrees, drawStream, drawExtents, drawCurves]) paint(state);
}

function go(position) {
	const before = model.position;
	model.seek(position);
	choose(model.position > before ? before : 0);
	if (model.position) explain(trace.event(model.position - 1));
	else begin();
	draw();
	replay.moved?.(model.position);
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
	/* A screen reader must not read each sentence while the page plays. */
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

/* Goes to the next event, in this direction, for which isIt() is true. */
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
	/* A number must match as a whole. */
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
	const action = actionOf(event, KEYS);
	if (!action) return;
	event.preventDefault();
	action(event);
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
	for (const [role, letter] of Object.entries(LETTERS).filter(([, l]) => l)) addToLegend("legend", letter, role, role);
	const purposes = Object.entries(COLOURS).filter(([purpose]) => trace.names.purpose.includes(purpose));
	for (const [purpose, colour] of purposes) addToLegend("purposes", "", purpose === "zone" ? "what its zone is for" : purpose, colour);
}

function addToLegend(id, letter, words, colour) {
	const mark = Object.assign(document.createElement("i"), {textContent: letter});
	mark.style.borderLeftColor = `var(--${colour})`;
	const entry = document.createElement("span");
	entry.append(mark, words);
	$(id).append(entry);
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
	/* page.html#812 opens the page at event 812; page.html#812/3 also cuts the power there, with outcome 3. */
	const [, position = 0, outcome] = /^#(\d+)(?:\/(\d+))?$/.exec(location.hash) ?? [];
	go(Number(position));
	if (outcome) {
		$("outcome").value = outcome;
		cutPower();
	}
}

/* The interface for programs that inspect this page, and for the page that shows two of them side by side. */
globalThis.replay = {
	moved: null, // called with the position when it has changed
	loaded: typeof document === "undefined" ? null : main(),
	go, play, pause,
	get trace() { return trace; },
	get model() { return model; },
	get samples() { return samples; },
	get drawn() { return drawn; },
};
