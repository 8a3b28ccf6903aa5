import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { decisionsIndex, readDecisions } from '../scripts/decisions-index.ts';
import { COMMANDS } from '../src/cli/command-table/command-table.ts';
import { PLATFORM_CODES, PlatformConfig } from '../src/contracts/index.ts';
import { configFileSchema } from '../src/kit/config/config-file.ts';
import { packageRoot } from '../src/kit/files/paths.ts';

const read = (page: string): string => readFileSync(join(packageRoot, page), 'utf8');
const PAGES = [
  ...readdirSync(packageRoot).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(packageRoot, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
const withoutCode = (text: string): string =>
  text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');

/** The anchors of a page's headings, as code hosts make them. */
function anchorsOf(page: string): Set<string> {
  const headings = [
    ...read(page)
      .replace(/^```[\s\S]*?^```/gm, '')
      .matchAll(/^#+ (.+)$/gm),
  ];
  return new Set(
    headings.map(([, heading]) =>
      heading!
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

test('docs/errors.md lists exactly the codes there are, with their statuses', () => {
  const rows = [...read('docs/errors.md').matchAll(/^- `([A-Z_]+)` \((\d{3})\): \S.*?\. \S.*$/gm)].map(
    ([, code, status]) => [code, Number(status)],
  );
  expect(rows.toSorted()).toEqual(Object.entries(PLATFORM_CODES).toSorted());
});

test('every link between pages leads to a file, and to a heading of it', () => {
  const broken: string[] = [];
  let links = 0;
  for (const page of PAGES) {
    for (const [, target] of withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target!)) continue;
      links++;
      const [file, anchor] = target!.split('#') as [string, string?];
      const linked = file === '' ? page : join(dirname(page), file);
      if (!existsSync(join(packageRoot, linked))) broken.push(`${page}: ${target} is no file`);
      else if (anchor && !anchorsOf(linked).has(anchor)) broken.push(`${page}: ${target} is no heading`);
    }
  }
  expect(broken).toEqual([]);
  expect(links).toBeGreaterThan(30);
});

/** What stands between backticks, page by page, where it matches. */
function quoted(pattern: RegExp): Array<{ page: string; found: RegExpExecArray }> {
  return PAGES.flatMap((page) =>
    [
      ...read(page)
        .replace(/^```[\s\S]*?^```/gm, '')
        .matchAll(/`([^`\n]+)`/g),
    ].flatMap(([, text]) => {
      const found = pattern.exec(text!);
      return found ? [{ page, found }] : [];
    }),
  );
}

test('every file of this repository that a page names is there', () => {
  const named = quoted(/^(?:src|test|docs|config|scripts|examples|bench|bin|docker)\/[\w./-]*$/);
  const absent = named.filter(({ found: [path] }) => !existsSync(join(packageRoot, path)));
  expect(absent.map(({ page, found: [path] }) => `${page}: ${path}`)).toEqual([]);
  expect(named.length).toBeGreaterThan(30);
});

test('every command that a page names is there', () => {
  const names = new Set(COMMANDS.map(({ name }) => name));
  const nouns = new Set(COMMANDS.map(({ name }) => name.split(' ')[0]));
  // `complete` is called by shells alone; "svc runs already on …" is a message.
  const named = quoted(/^svc (?!complete |runs already)([a-z]+)(?: ([a-z-]+))?/);
  const absent = named.filter(({ found: [, word, verb] }) => {
    const noun = nouns.has(word) ? word : `${word}s`;
    return !names.has(noun!) && !(verb ? names.has(`${noun} ${verb}`) : nouns.has(noun));
  });
  expect(absent.map(({ page, found }) => `${page}: ${found.input}`)).toEqual([]);
  expect(named.length).toBeGreaterThan(50);
});

interface Schema {
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  oneOf?: Schema[];
}

/** Whether a config may have something at `keys`; `*`, and names of tenants, plugins and the like, are any. */
function hasKey(schema: Schema, [key, ...rest]: string[]): boolean {
  if (key === undefined) return true;
  const { properties = {}, additionalProperties, anyOf = [], oneOf = [] } = schema;
  const inside =
    key === '*' ? Object.values(properties) : Object.hasOwn(properties, key) ? [properties[key]!] : [];
  if (inside.length === 0 && typeof additionalProperties === 'object') inside.push(additionalProperties);
  return (
    inside.some((one) => hasKey(one, rest)) || [...anyOf, ...oneOf].some((one) => hasKey(one, [key, ...rest]))
  );
}

/** Named as keys are: analytics and diagnostic events, files, a key of a manifest. */
const NO_KEYS = /^(?:workflow\.run|cache\.(?:hit|miss)|marketplace\.plugin)\b|_|\.(?:db|json)$|^auth\.type$/;

test('every key of the config that a page names is there', () => {
  const schema = configFileSchema() as Schema;
  const sections = Object.keys(schema.properties!).join('|');
  const named = quoted(new RegExp(`^(?:${sections})(?:\\.[a-z*][\\w*-]*)+(?=$|: )`)).filter(
    ({ page, found: [key] }) => page !== 'docs/manifest.md' && !NO_KEYS.test(key),
  );
  const absent = named.filter(({ found: [key] }) => !hasKey(schema, key.split('.')));
  expect(absent.map(({ page, found: [key] }) => `${page}: ${key}`)).toEqual([]);
  expect(named.length).toBeGreaterThan(40);
});

test.each(['docs/gateway.md', 'docs/operations.md'])('the config that %s shows is one', (page) => {
  const shown = [...read(page).matchAll(/^```json\n([\s\S]*?)^```/gm)].map(([, text]) => JSON.parse(text!));
  expect(shown.length).toBeGreaterThan(1);
  for (const config of shown) expect(PlatformConfig.safeParse(config).error?.issues).toBeUndefined();
});

/** The files whose comments name pages: `src`, `test`, `scripts` and `bench`. */
function commentedFiles(): string[] {
  return ['src', 'test', 'scripts', 'bench'].flatMap((folder) =>
    readdirSync(join(packageRoot, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.[jt]s$/.test(name) && !name.includes('node_modules'))
      .map((name) => `${folder}/${name}`),
  );
}

test('every page, heading and decision that a comment names exists', () => {
  const headings = new Map(
    PAGES.map((page) => [page, new Set([...read(page).matchAll(/^#+ (.+)$/gm)].map(([, title]) => title))]),
  );
  const decisions = new Set(readDecisions().map(({ number }) => number));
  const broken: string[] = [];
  let named = 0;
  for (const file of commentedFiles()) {
    if (file === 'test/docs.test.ts') continue;
    for (const [reference, page, heading] of read(file).matchAll(/(docs\/[a-z-]+\.md)(?: "([^"]+)")?/g)) {
      named++;
      if (!headings.has(page!) || (heading && !headings.get(page!)!.has(heading)))
        broken.push(`${file}: ${reference}`);
    }
    for (const [reference, number] of read(file).matchAll(/docs\/decisions\/(\d{4})/g)) {
      named++;
      if (!decisions.has(number!)) broken.push(`${file}: ${reference}`);
    }
  }
  expect(broken).toEqual([]);
  expect(named).toBeGreaterThan(100);
});

test('every decision has a title, a date, a status and three parts; `npm run generate` writes the index', () => {
  const faulty = readDecisions().filter(
    ({ title, text }) =>
      title === '' ||
      !/^\d{4}-\d\d-\d\d\. Status: \S/m.test(text) ||
      !['Context', 'Decision', 'Consequences'].every((part) => text.includes(`\n**${part}.** `)),
  );
  expect(faulty.map(({ file }) => file)).toEqual([]);
  expect(read('docs/decisions/README.md')).toBe(decisionsIndex());
});
