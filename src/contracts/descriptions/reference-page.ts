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

const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``;

/** Types of a value, such as `number`, `"a" or "b"`, `text or null`. */
function typesOf(node: Node): string[] {
  const variants = (node.anyOf ?? node.oneOf) as Node[] | undefined;
  if (variants) return [...new Set(variants.flatMap(typesOf))];
  if (node.const !== undefined) return [code(JSON.stringify(node.const))];
  if (node.enum) return node.enum.map((value) => code(JSON.stringify(value)));
  if (node.type === 'array')
    return [`list of ${node.items ? typesOf(node.items as Node).join(' or ') : 'values'}`];
  return [node.type ?? 'any'].flat();
}

function defaultOf({ default: value }: Node): string {
  const json = JSON.stringify(value);
  return json === undefined || json === '{}' || json.length > 48 ? '' : code(json);
}

/** Largest number of a JSON schema that zod prints for "no bound". */
const UNBOUNDED = Number.MAX_SAFE_INTEGER;

function boundsOf({ minimum, exclusiveMinimum, maximum }: Node): string {
  const least = minimum ?? (exclusiveMinimum === undefined ? undefined : exclusiveMinimum + 1);
  const from = least === undefined || least <= 1 ? undefined : least;
  const to = maximum === undefined || maximum === UNBOUNDED ? undefined : maximum;
  if (from === undefined && to === undefined) return '';
  if (to === undefined) return `, at least ${from}`;
  return from === undefined ? `, at most ${to}` : `, ${from} to ${to}`;
}

/** One table for each top-level key; keys below `stop` are described elsewhere. */
function tables(schema: object, stop: (path: string) => boolean): string {
  const sections = new Map<string, Map<string, string>>();
  walkSchema(schema as SchemaNode, (path, given) => {
    if (stop(path)) return;
    const node = given as Node;
    const [section = path] = path.split('.');
    const rows = sections.get(section) ?? new Map<string, string>();
    sections.set(section, rows);
    const type = `${typesOf(node).join(' or ')}${boundsOf(node)}`;
    // A key of several variants of an object is one row: the first variant's.
    if (!rows.has(path))
      rows.set(path, `| ${code(path)} | ${type} | ${defaultOf(node)} | ${node.description ?? ''} |`);
  });
  return [...sections]
    .map(([name, rows]) =>
      [`## ${name}`, '', '| Key | Type | Default | Meaning |', '|---|---|---|---|', ...rows.values()].join(
        '\n',
      ),
    )
    .join('\n\n');
}

const GENERATED = 'Generated from the schema by `npm run generate`; a test keeps it current.';

/** `docs/configuration.md`. Profiles repeat the base, so their keys are left out. */
export function configurationPage(schema: object): string {
  return `# Configuration reference

${GENERATED}

How the file is found, how profiles are merged and which environment variables count is in
[operations.md](operations.md#configuration). \`svc config show --origin\` prints the values in effect.

In a key, \`*\` stands for any name or item. \`config/default.json\` shows all defaults as one file.

${tables(schema, (path) => path.startsWith('profiles.') || path === '$schema')}
`;
}

/** `docs/manifest.md`. Workflows have a page of their own. */
export function manifestPage(schema: object): string {
  return `# Manifest reference

${GENERATED}

[plugins.md](plugins.md) shows how the parts work together, [webhooks.md](webhooks.md) and
[workflows.md](workflows.md) explain theirs.

In a key, \`*\` stands for any name or item. The \`permissions\` of a command or route have the keys of the plugin's.

${tables(schema, (path) => path === '$schema' || /^(?:commands|rest\.routes)\.\*\.permissions\./.test(path) || path.startsWith('workflows.*.'))}
`;
}
