// SPDX-License-Identifier: MIT
/* The parts of a replay's page, as its file has them: {html, data, records, code}. */
"use strict";
const fs = require("fs");

module.exports = (path) => {
	const html = fs.readFileSync(path, "utf8");
	const [data, records, ...code] = [...html.matchAll(/<script[^>]*>(.*?)<\/script>/gs)].map((found) => found[1]);
	return {html, data, records, code: code.join("\n")};
};
