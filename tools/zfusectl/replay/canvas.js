// SPDX-License-Identifier: MIT
/* Helpers of all pages: canvases, tables, fields, keys. */
"use strict";

const $ = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");

/* Sets a field, but not while the user types in it. */
function show(id, value) {
	if (document.activeElement !== $(id)) $(id).value = value;
}

/* The entry of `keys` for a pressed key; null if the key is for a field, a button or the browser. */
function actionOf(event, keys) {
	if (event.ctrlKey || event.altKey || event.metaKey) return null;
	if (event.target.matches("input:not([type=checkbox]), select, summary")) return null;
	if (event.key === " " && event.target.matches("button, input")) return null;
	return keys[event.key] ?? null;
}

/* ---- canvases ---- */

/* The colours that page.css defines for the current theme. */
const COLOUR_NAMES = ["back", "text", "faint", "line", "now", "none", "super", "meta", "log", "hot", "cold", "overwrite", "reclaim"];
const palette = {};
function readPalette() {
	const style = getComputedStyle(document.documentElement);
	for (const name of COLOUR_NAMES)
		palette[name] = style.getPropertyValue(`--${name}`).trim();
}

/* Empties a canvas and gives it this height; sizes are in CSS pixels. */
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
