#!/usr/bin/env node
// SPDX-License-Identifier: MIT
/*
 * Runs the whole page of a replay in a simulated document, and uses every control.
 *
 *     page.js PAGE.html
 *
 * Prints, as JSON, the texts of the page: {warning, steps: [{event, sentence, marked}], cuts, found, position}. An exception
 * of the page ends the program.
 */
"use strict";
const vm = require("vm");
const zlib = require("zlib");
const {Duplex} = require("stream");
const {html, data, records, code} = require("./parts.js")(process.argv[2]);

const words = []; // texts drawn on canvases since the list was emptied
const pen = new Proxy({canvas: {width: 1200, height: 400}, fillText: (text) => words.push(text)}, {
	get: (has, name) => has[name] ?? (() => {}),
	set: () => true,
});

class Element {
	constructor(id) {
		Object.assign(this, {id, style: {}, textContent: "", value: "", listeners: {}});
		Object.assign(this, {open: true, checked: true, hidden: true, clientWidth: 1200});
	}
	addEventListener(type, listener) { this.listeners[type] = listener; }
	fire(type, event = {}) { this.listeners[type]({target: this, preventDefault() {}, ...event}); }
	setAttribute(name, value) { this[name] = value; }
	getBoundingClientRect() { return {left: 0, top: 0}; }
	getContext() { return pen; }
	insertRow() { return new Element(); }
	insertCell() { return new Element(); }
	matches() { return false; }
	append() {}
	replaceChildren() {}
	focus() {}
}

const elements = new Map([...html.matchAll(/id="([\w-]+)"/g)].map(([, id]) => [id, new Element(id)]));
elements.get("trace").textContent = data;
elements.get("records").textContent = records;
elements.get("speed").value = "100000";
elements.get("outcome").value = "1";

const frames = [];
const document = new Element("document");
document.getElementById = (id) => elements.get(id);
document.createElement = () => new Element();
Object.assign(globalThis, {
	document,
	window: new Element("window"),
	location: {hash: ""},
	matchMedia: () => new Element(),
	getComputedStyle: () => ({getPropertyValue: () => "#000"}),
	requestAnimationFrame: (frame) => frames.push(frame),
	/* The DecompressionStream of Debian 12's node does not support deflate-raw. */
	DecompressionStream: class {
		constructor() { return Duplex.toWeb(zlib.createInflateRaw()); }
	},
});

const press = (key) => document.fire("keydown", {key, target: new Element()});
const said = () => elements.get("sentence").textContent;

/* The step of the first event of each kind. */
function steps(trace, go, describe) {
	const seen = new Map();
	for (let i = 0; i < trace.count; i++) if (!seen.has(trace.event(i).event)) seen.set(trace.event(i).event, i);
	return [...seen].map(([event, index]) => {
		words.length = 0;
		go(index + 1);
		/* Operations have a bar instead of a mark. */
		const marked = words.includes(describe(trace.event(index), trace).mark) || event.startsWith("operation");
		return {event, sentence: said(), marked};
	});
}

/* The texts of the page for a cut at each position, and for the next outcome of that cut. */
function cuts(go, positions) {
	return positions.flatMap((position) => {
		go(position);
		return ["x", "o"].map((key) => {
			press(key);
			return ["said", "promised", "survived", "gone", "command"].map((id) => elements.get(`cut-${id}`).textContent);
		});
	});
}

function useEverything() {
	for (const key of ["Home", "ArrowRight", "ArrowLeft", "End", "[", "]", "Home", "c", "/"]) press(key);
	for (const canvas of ["lanes", "map", "curves"])
		for (const clientX of [10, 300, 1100]) elements.get(canvas).fire("click", {clientX, clientY: 10});
	elements.get("lanes").fire("mousemove", {offsetX: 500});
	for (const id of ["slider", "inode", "strip-zone"]) {
		elements.get(id).value = "3";
		elements.get(id).fire("input");
	}
	window.fire("resize");
	press("Home");
	press(" ");
	for (let at = 0; frames.length; at += 1000) frames.shift()(performance.now() + at);
}

vm.runInThisContext(`${code}
globalThis.page = {go, describe, get trace() { return trace; }};`);
function whenShown() {
	if (elements.get("main").hidden && elements.get("warning").hidden) return setTimeout(whenShown, 10);
	const {trace, go, describe} = globalThis.page, warning = elements.get("warning").textContent;
	const told = steps(trace, go, describe);
	const cut = cuts(go, [1, 2, 3].map((part) => Math.floor((trace.count * part) / 4)));
	useEverything();
	press("Home");
	elements.get("search").value = "zone 3";
	elements.get("find-next").fire("click");
	console.log(JSON.stringify({warning, steps: told, cuts: cut, found: said(), position: elements.get("position").textContent}));
}
whenShown();
