import { SERVICE_NAMES } from '../common.ts';
import { type SchemaNode, walkSchema } from './describe.ts';

interface Node extends SchemaNode {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
}

/** Documentation of one schema key. */
interface Row {
  path: string;
  /** The default value or the type, followed by the bounds. */
  value: string;
  meaning: string;
}

/** Escapes angle brackets outside backticks, because Markdown would render such brackets as HTML. */
const escaped = (text: string) => text.replace(/`[^`]*`|</g, (part) => (part === '<' ? '&lt;' : part));
const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``;

/** Returns the types of a value, such as `number`, `"a" or "b"`, `text or null`. */
function typesOf(node: Node): string[] {
  const variants = (node.anyOf ?? node.oneOf) as Node[] | undefined;
  if (variants) return [...new Set(variants.flatMap(typesOf))];
  if (node.const !== undefined) return [code(JSON.stringify(node.const))];
  if (node.enum) return node.enum.map((value) => code(JSON.stringify(value)));
  if (node.type === 'array') {
    const items = node.items ? typesOf(node.items as Node) : ['any'];
    return [items.length === 1 ? `${items[0]} list` : `list of ${items.join(', ')}`];
  }
  return [node.type ?? 'any'].flat();
}

function defaultOf({ default: value }: Node): string {
  const json = JSON.stringify(value);
  return json === undefined || json === '{}' || json.length > 48 ? '' : code(json);
}

/** The maximum that zod prints for integers without a maximum. */
const UNBOUNDED = Number.MAX_SAFE_INTEGER;

function boundsOf({ minimum, exclusiveMinimum, maximum }: Node): string {
  const least = minimum ?? (exclusiveMinimum === undefined ? undefined : exclusiveMinimum + 1);
  const from = least === undefined || least <= 1 ? undefined : least;
  const to = maximum === undefined || maximum === UNBOUNDED ? undefined : maximum;
  if (from !== undefined && to !== undefined) return ` ${from}–${to}`;
  if (to !== undefined) return ` ≤${to}`;
  return from === undefined ? '' : ` ≥${from}`;
}

/**
 * Returns the text that shows the default value, the type and the bounds of a key. Returns only the default value for
 * objects and strings, and for choices that the description explains.
 */
function shownValue(node: Node): string {
  const [types, preset] = [typesOf(node).filter((type) => type !== 'null'), defaultOf(node)];
  if (types.length === 1 && ['object', 'string'].includes(types[0]!)) return preset;
  const isChoice = types.length > 1 && types.every((type) => type.startsWith('`'));
  const explained = types.every((type) => node.description?.includes(type.slice(1, -1)));
  if (isChoice && explained) return preset;
  if (isChoice) return [preset, `one of ${types.join(', ')}`].filter(Boolean).join('; ');
  const showsType = preset !== '' && node.default !== null;
  return `${showsType ? preset : [preset, ...types].filter(Boolean).join(', ')}${boundsOf(node)}`;
}

function rowOf(path: string, node: Node): Row {
  return { path, value: shownValue(node), meaning: node.description ?? '' };
}

/** Returns one row per key. Omits keys that another page describes. */
function rowsOf(schema: object, stop: (path: string) => boolean): Row[] {
  const rows = new Map<string, Row>();
  walkSchema(schema as SchemaNode, (path, node) => {
    // If several variants of an object have the key, the first variant is shown.
    if (!stop(path) && !rows.has(path)) rows.set(path, rowOf(path, node as Node));
  });
  return [...rows.values()];
}

/** Replaces the keys of an object with a reference if an earlier object has the same keys. */
function withoutRepeats(rows: Row[]): Row[] {
  const seen = new Map<string, string>();
  const repeated: string[] = [];
  const shown: Row[] = [];
  for (const row of rows) {
    if (repeated.some((path) => row.path.startsWith(`${path}.`))) continue;
    const below = rows.filter(({ path }) => path.startsWith(`${row.path}.`));
    const keys = JSON.stringify(
      below.map(({ path, ...rest }) => ({ path: path.slice(row.path.length), ...rest })),
    );
    const first = below.length > 1 ? seen.get(keys) : undefined;
    seen.set(keys, first ?? row.path);
    if (first === undefined) shown.push(row);
    else {
      repeated.push(row.path);
      shown.push({ ...row, meaning: `${row.meaning} Keys: see ${code(first)}.` });
    }
  }
  return shown;
}

/** Renders the keys as a list. Keys that have the same last path segment, value and description share a line. */
function list(rows: readonly Row[]): string {
  const lastName = (path: string): string => path.slice(path.lastIndexOf('.') + 1);
  const sharedLines = Map.groupBy(rows, ({ path, ...rest }) => JSON.stringify([lastName(path), rest]));
  return [...sharedLines.values()]
    .map((same) => {
      const { value, meaning } = same[0]!;
      const keys = same.map(({ path }) => code(path)).join(', ');
      return `- ${keys}${value && ` (${value})`}: ${escaped(meaning)}`;
    })
    .join('\n');
}

/** Returns one line per earlier section that already describes some of these keys. The line refers to that section. */
function references(rows: readonly Row[], described: ReadonlyMap<string, string>): string[] {
  const repeated = rows.filter((row) => described.has(identity(row)));
  const parent = (path: string): string => path.slice(0, path.lastIndexOf('.'));
  return [...Map.groupBy(repeated, (row) => parent(described.get(identity(row))!))].map(
    ([where, same]) => `- ${same.map(({ path }) => code(path)).join(', ')}: as in ${code(where)}.`,
  );
}

const identity = ({ path, value, meaning }: Row): string =>
  JSON.stringify([path.slice(path.lastIndexOf('.') + 1), value, meaning]);

/** Renders one section per top-level key. A section contains the key's description and the keys below the key. */
function sections(rows: Row[]): string {
  const described = new Map<string, string>();
  return [...Map.groupBy(withoutRepeats(rows), ({ path }) => path.split('.')[0]!)]
    .map(([name, [top, ...below]]) => {
      const value = below.length === 0 && top!.value !== '' ? ` (${top!.value})` : '';
      const about = `${escaped(top!.meaning)}${value}`;
      const own = below.filter((row) => !described.has(identity(row)) && !isGroup(row, below));
      const lines = [...(own.length > 0 ? [list(own)] : []), ...references(below, described)];
      for (const row of own) if (row.path.includes('*')) described.set(identity(row), row.path);
      return [`## ${name}`, about, ...(lines.length > 0 ? [lines.join('\n')] : [])].join('\n\n');
    })
    .join('\n\n');
}

/** Returns true if a key only groups other keys. The description of such a key only repeats its name. */
function isGroup({ path, value, meaning }: Row, rows: readonly Row[]): boolean {
  return (
    (value === '' || value === 'object list') &&
    /^(?!Schema)[\w-]+(?: [\w-]+){0,4}\.$/.test(meaning) &&
    rows.some((row) => row.path.startsWith(`${path}.`))
  );
}

const keyOf = (path: string, section: string) => path.slice(section.length + 1);

/** Returns the keys common to all services, such as `port`. */
function serviceKeys(rows: readonly Row[]): string[] {
  const [first, ...others] = SERVICE_NAMES;
  const paths = new Set(rows.map(({ path }) => path));
  return rows
    .filter(({ path }) => path.startsWith(`${first}.`))
    .map(({ path }) => keyOf(path, first))
    .filter((key) => others.every((service) => paths.has(`${service}.${key}`)));
}

/** Merges a key that all services have into one row. Lists the values by service if the values differ. */
function serviceRow(rows: readonly Row[], key: string): Row {
  const ofEach = SERVICE_NAMES.map((service) => rows.find(({ path }) => path === `${service}.${key}`)!);
  const [{ value, meaning }] = ofEach as [Row];
  const values = ofEach.map((row) => `${row.path.split('.')[0]} ${row.value.split(' ')[0]}`);
  return {
    path: `<service>.${key}`,
    value: ofEach.some((row) => row.value !== value) ? values.join(', ') : value,
    meaning: meaning.replaceAll(SERVICE_NAMES[0].toUpperCase(), '<SERVICE>'),
  };
}

const GENERATED = 'Generated from the schema by `npm run generate`.';
const NOTATION =
  'In a key, `*` stands for any name or item. Brackets show the default, or the type unless it is string or object, and\nbounds.';

/**
 * Renders `docs/configuration.md`. Profiles have the same keys as the base config, so the keys of profiles are omitted.
 */
export function configurationPage(schema: object): string {
  const rows = rowsOf(schema, (path) => path.startsWith('profiles.') || path === '$schema');
  const shared = serviceKeys(rows);
  const sharedPaths = new Set(SERVICE_NAMES.flatMap((service) => shared.map((key) => `${service}.${key}`)));
  return `# Configuration reference

${GENERATED}
[operations.md](operations.md#configuration) explains files, profiles and environment variables.
\`svc config show --origin\` prints the values in effect.

${NOTATION}

## Each service

\`<service>\` is one of ${SERVICE_NAMES.map(code).join(', ')}.

${list(shared.map((key) => serviceRow(rows, key)))}

${sections(rows.filter(({ path }) => !sharedPaths.has(path)))}
`;
}

/** Renders `docs/manifest.md`. Workflow keys are omitted, because workflows are documented on a separate page. */
export function manifestPage(schema: object): string {
  const stop = (path: string) =>
    path === '$schema' ||
    path.startsWith('workflows.*.') ||
    /^(?:commands|rest\.routes)\.\*\.permissions\./.test(path);
  return `# Manifest reference

${GENERATED} Guides: [plugins.md](plugins.md), [webhooks.md](webhooks.md), [workflows.md](workflows.md).

${NOTATION} The \`permissions\` of a command or route have the keys of the plugin's.

${sections(rowsOf(schema, stop))}
`;
}
