// SPDX-License-Identifier: MIT
/*
 * Shows two pages side by side, each in a frame of its own, and moves both together; align.js tells how many events of each
 * belong to a step. Each frame has the whole page of one trace. This page uses a frame only through the object `replay` of
 * page.js.
 */
"use strict";

const SIDES = [0, 1], COLOURS = ["meta", "log"], DASHES = [[], [6, 4]];
const names = JSON.parse($("names").textContent);
let frames, alignment;
let step = 0, playing = null; // {since, from}
let isMoving = false; // this page moves the frames, not the user in one of them
const drawn = {};

/* ---- the frames ---- */

function makeFrame(side) {
	const pieces = JSON.parse($("page").textContent), column = document.createElement("div"), frame = document.createElement("iframe");
	const title = Object.assign(document.createElement("h2"), {textContent: `${["Left", "Right"][side]}: ${names[side]}`});
	frame.title = title.textContent;
	frame.srcdoc = pieces[0] + $(`trace-${side}`).textContent + pieces[1] + $(`records-${side}`).textContent + pieces[2];
	column.append(title, frame);
	$("runs").append(column);
	return new Promise((resolve) => frame.addEventListener("load", () => resolve(frame)));
}

/* Keeps a frame as high as its page, so that only the outer page scrolls. */
function fit(frame) {
	const {body} = frame.contentDocument;
	body.classList.add("beside");
	new ResizeObserver(() => { frame.style.height = `${Math.ceil(body.getBoundingClientRect().height)}px`; }).observe(body);
}

const replayOf = (side) => frames[side].contentWindow.replay;

/* ---- numbers ---- */

const commands = (state) => [...state.done].sort().map(([command, count]) => `${number(count)} ${command}`).join(", ");
/* The numbers that are compared: [words, function of a side's state]. */
const NUMBERS = [
	["events", (state, {model}) => number(model.position)],
	["operations that have ended", (state) => number(state.ended_operations)],
	["bytes that programs wrote", (state) => number(state.written)],
	["bytes that went to the device", (state) => number(sent(state))],
	["bytes to the device for each that programs wrote", (state) => (state.written ? (sent(state) / state.written).toFixed(2) : "–")],
	["of them for data", (state) => number(state.sent.get("data") ?? 0)],
	["for nodes", (state) => number(state.sent.get("nodes") ?? 0)],
	["for holes alone", (state) => number(state.sent.get("holes") ?? 0)],
	["for the log", (state) => number(state.sent.get("log") ?? 0)],
	["for superblocks", (state) => number(state.sent.get("superblock") ?? 0)],
	["moved by reclaim", (state) => number(state.sent.get("reclaim") ?? 0)],
	["commands", commands],
	["commands in flight at once, at most", (state) => number(state.most_in_flight)],
	["newest durable generation", (state) => number(state.superblock?.generation ?? 0)],
];
const sent = (state) => [...state.sent.values()].reduce((a, b) => a + b, 0);

function drawNumbers() {
	const states = SIDES.map((side) => [replayOf(side).model.state, replayOf(side)]);
	rows("numbers", ["", "left", "right"], NUMBERS.map(([words, of]) => ({cells: [words, ...states.map((state) => of(...state))]})));
}

/* ---- curves ---- */

const TALL = 64, LEFT = 170;
const last = (values) => values.at(-1), most = (values) => Math.max(...values);
/* [name, key in a sample, function that chooses the value to print, words for that value] */
const CURVES = [["write amplification", "amplification", last, "at the end"], ["empty zones", "empty", last, "at the end"],
	["slowest operation", "latency", most, "at most"]];

/* Latencies are in the unit of the traces' clock. */
function say(key, value) {
	if (key !== "latency") return number(Number(value.toFixed(2)));
	return replayOf(0).trace.header.clock ? `${number(value)} events` : `${(value / 1e6).toFixed(2)} ms`;
}

function drawCurves() {
	const {pen, width} = clear("curves", CURVES.length * TALL), long = width - LEFT - 2;
	const x = (at) => LEFT + (at / Math.max(1, alignment.count)) * long;
	CURVES.forEach(([name, key, tell, words], i) => {
		const known = SIDES.map((side) => replayOf(side).samples.filter((sample) => sample[key] !== null));
		const highest = Math.max(1e-9, ...known.flat().map((sample) => sample[key]));
		const told = known.map((list) => (list.length ? say(key, tell(list.map((sample) => sample[key]))) : "?"));
		text(pen, palette.text, name, 0, i * TALL + 14);
		SIDES.forEach((side) => text(pen, palette[COLOURS[side]], `${["left", "right"][side]}: ${told[side]} ${words}`, 0, i * TALL + 29 + side * 15));
		line(pen, palette.line, LEFT, (i + 1) * TALL - 4, width, (i + 1) * TALL - 4);
		for (const side of SIDES) {
			pen.strokeStyle = palette[COLOURS[side]];
			pen.lineWidth = 2;
			pen.setLineDash(DASHES[side]);
			pen.beginPath();
			for (const sample of known[side])
				pen.lineTo(x(alignment.stepOf(side, sample.at + 1)), (i + 1) * TALL - 6 - (sample[key] / highest) * (TALL - 12));
			pen.stroke();
		}
		pen.setLineDash([]);
	});
	line(pen, palette.now, x(step), 0, x(step), CURVES.length * TALL);
	drawn.curves = {long};
	$("curves").setAttribute("aria-label", NUMBERS.slice(1, 5).map(([words, of]) => `${words}: ` +
		SIDES.map((side) => of(replayOf(side).model.state, replayOf(side))).join(" and ")).join("; "));
}

/* ---- moving ---- */

function draw() {
	$("slider").value = step;
	const parts = SIDES.map((side) => `${number(alignment.positions[side][step])} of ${number(replayOf(side).trace.count)}`);
	$("position").textContent = `${parts[0]} | ${parts[1]}`;
	if (playing && performance.now() - (drawn.tables ?? 0) < 250) return;
	drawn.tables = performance.now();
	drawNumbers();
	drawCurves();
}

function go(to) {
	step = Math.max(0, Math.min(to, alignment.count));
	isMoving = true;
	for (const side of SIDES) {
		const position = alignment.positions[side][step];
		if (replayOf(side).model.position !== position) replayOf(side).go(position);
	}
	isMoving = false;
	draw();
}

/* The user has moved one of the two pages: the other one follows. */
function follow(side, position) {
	if (isMoving) return;
	pause();
	go(alignment.stepOf(side, position));
}

function pause() {
	playing = null;
	$("play").textContent = "Play";
}

function play() {
	if (playing) {
		pause();
		return draw();
	}
	if (step >= alignment.count) go(0);
	playing = {since: performance.now(), from: step};
	$("play").textContent = "Pause";
	requestAnimationFrame(frame);
}

function frame(now) {
	if (!playing) return;
	const to = playing.from + Math.floor(((now - playing.since) / 1000) * Number($("speed").value));
	if (to >= alignment.count) pause();
	if (to > step) go(to);
	if (playing) requestAnimationFrame(frame);
}

const by = (steps) => () => { pause(); go(step + steps); };

const KEYS = {
	" ": () => play(), ArrowRight: (e) => by(e.shiftKey ? 100 : 1)(), ArrowLeft: (e) => by(e.shiftKey ? -100 : -1)(),
	Home: by(-Infinity), End: by(Infinity),
};

function onKey(event) {
	const action = actionOf(event, KEYS);
	if (!action) return;
	event.preventDefault();
	event.stopImmediatePropagation();
	action(event);
}

/* The left page stays where it is. */
function align() {
	const position = alignment ? alignment.positions[0][step] : 0;
	alignment = new Alignment(SIDES.map((side) => replayOf(side).trace), $("by").value);
	$("slider").max = alignment.count;
	go(alignment.stepOf(0, position));
}

function listen() {
	const buttons = {first: by(-Infinity), last: by(Infinity), previous: by(-1), next: by(1), play};
	for (const [id, act] of Object.entries(buttons)) $(id).addEventListener("click", act);
	$("slider").addEventListener("input", () => { pause(); go(Number($("slider").value)); });
	$("speed").addEventListener("change", () => { if (playing) playing = {since: performance.now(), from: step}; });
	$("by").addEventListener("change", () => { pause(); align(); });
	$("curves").addEventListener("click", (event) => {
		const {left} = $("curves").getBoundingClientRect();
		pause();
		go(Math.round(((event.clientX - left - LEFT) / drawn.curves.long) * alignment.count));
	});
	for (const target of [document, ...frames.map(({contentDocument}) => contentDocument)])
		target.addEventListener("keydown", onKey, true);
	for (const side of SIDES) replayOf(side).moved = (position) => follow(side, position);
	const repaint = () => { readPalette(); draw(); };
	window.addEventListener("resize", repaint);
	for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", repaint);
}

/* ---- beginning ---- */

function about() {
	$("about").textContent = SIDES.map((side) => {
		const {trace} = replayOf(side), {operations} = alignment, {workload} = trace.header;
		return `${["Left", "right"][side]}: ${names[side]}, ${number(trace.count)} events` +
			(operations[side] ? ` of ${number(operations[side])} operations` : "") + (workload ? `, made by: ${workload}` : "");
	}).join(" · ");
}

async function main() {
	frames = await Promise.all(SIDES.map(makeFrame));
	await Promise.all(SIDES.map((side) => replayOf(side).loaded));
	const wrong = SIDES.filter((side) => !replayOf(side).trace || !replayOf(side).model);
	if (wrong.length) {
		$("warning").hidden = false;
		$("warning").textContent = `The page of ${names[wrong[0]]} says why it cannot be played.`;
		return;
	}
	readPalette();
	align();
	about();
	listen();
	frames.forEach(fit);
	/* page.html#812 opens the page at step 812. */
	const [, at = 0] = /^#(\d+)$/.exec(location.hash) ?? [];
	go(Number(at));
}

/* For programs that look at this page. */
globalThis.replay = {
	loaded: typeof document === "undefined" ? null : main(),
	go, play, pause,
	get alignment() { return alignment; },
	get step() { return step; },
	sides: () => SIDES.map(replayOf),
};
