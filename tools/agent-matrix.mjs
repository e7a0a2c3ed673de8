// agent-matrix.mjs FILE [--write]: the matrix of agents and abilities of a Markdown file, from
// `abctl agent capabilities --json` on stdin.  It stands between <!-- matrix --> and <!-- matrix end -->.
// Prints nothing and exits 0 when it is not stale; else prints what it should be and exits 1.
import { readFileSync, writeFileSync } from "node:fs";

const [file, write] = process.argv.slice(2);
const { agents, abilities } = JSON.parse(readFileSync(0, "utf8"));
const known = agents.filter((a) => a.abilities).sort((a, b) => (a.name < b.name ? -1 : 1));
const row = (head, cell) => `| ${[head, ...known.map(cell)].join(" | ")} |`;
const table = [
	row("", (a) => `\`${a.name}\``),
	`|${"---|".repeat(known.length + 1)}`,
	row("driver", (a) => `\`${a.driver}\``),
	row("version", (a) => a.version ?? "-"),
	...abilities.map((x) => row(`\`${x.name}\``, (a) => a.abilities[x.name])),
].join("\n");

const text = readFileSync(file, "utf8");
const parts = text.split(/(<!-- matrix -->\n|\n<!-- matrix end -->)/);
if (parts.length !== 5) throw new Error(`${file}: no place for the matrix`);
if (parts[2] === table) process.exit(0);
parts[2] = table;
if (write === "--write") writeFileSync(file, parts.join(""));
else console.log(table);
process.exitCode = write === "--write" ? 0 : 1;
