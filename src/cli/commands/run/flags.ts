import { z } from 'zod';
import { messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { kebab } from '../../command-arguments.ts';
import { GLOBAL_FLAGS } from '../../globals.ts';
import { readJson } from '../../json-flag.ts';
import { argumentProblem, UsageError } from '../../parse-args.ts';

type JsonSchema = Record<string, unknown>;

/** Type of a flag, which determines how the text of the flag is parsed. */
type Kind = 'string' | 'number' | 'boolean' | 'list' | 'json';

const PLACEHOLDERS: Record<Kind, string> = {
  string: 'text',
  number: 'n',
  boolean: '',
  list: 'text',
  json: 'json',
};

export interface Flags {
  args: z.ZodObject;
  kinds: Readonly<Record<string, Kind>>;
  /** Descriptions of the required properties that have a flag, by property name. */
  required: ReadonlyMap<string, string>;
  /** Required flags with placeholders, for the example in help. */
  example: string;
}

/** Name of the flag that sets the whole input as JSON. */
const INPUT_FLAG = 'input';
const RESERVED = new Set([...GLOBAL_FLAGS.map(({ name }) => camel(name)), INPUT_FLAG, 'help']);

/**
 * Creates a flag for each property of an object schema. Properties with invalid or reserved flag names, and inputs that
 * are not objects, can be set only with `--input`.
 */
export function flagsOf(schema: JsonSchema | null): Flags {
  const root = follow(schema ?? {}, schema ?? {});
  const properties = isRecord(root.properties) ? root.properties : {};
  const required = new Set(Array.isArray(root.required) ? root.required : []);
  const shape: Record<string, z.ZodType> = {};
  const kinds: Record<string, Kind> = {};
  const demanded = new Map<string, string>();
  let example = '';
  for (const [name, property] of Object.entries(properties)) {
    if (!/^[a-z][A-Za-z0-9]*$/.test(name) || RESERVED.has(name)) continue;
    const described = follow(isRecord(property) ? property : {}, schema ?? {});
    const kind = kindOf(described);
    kinds[name] = kind;
    if (required.has(name)) demanded.set(name, describe(described, kind, false));
    shape[name] = flagSchema(kind)
      .optional()
      .meta({ description: describe(described, kind, required.has(name)), placeholder: PLACEHOLDERS[kind] });
    if (required.has(name))
      example += ` --${kebab(name)}${kind === 'boolean' ? '' : ` <${PLACEHOLDERS[kind]}>`}`;
  }
  shape[INPUT_FLAG] = z.string().optional().meta({
    description: 'the whole input as JSON, overridden by flags; "@<file>" reads a file, "-" reads stdin',
    placeholder: 'json',
  });
  return { args: z.object(shape), kinds, required: demanded, example };
}

/**
 * Builds the input of a command from its flags. Throws UsageError if a value is invalid JSON, or if `--input` is not an
 * object and other flags are set. Throws VALIDATION_ERROR for missing flags.
 */
export async function inputOf(
  args: Readonly<Record<string, unknown>>,
  flags: Flags,
  cwd: string,
): Promise<unknown> {
  const input = await givenInput(args, flags, cwd);
  if (!isRecord(input)) return input;
  const missing = [...flags.required].filter(([name]) => input[name] === undefined);
  if (missing.length === 0) return input;
  const problems = missing.map(([name, about]) => ({
    path: `--${kebab(name)}`,
    message: `is missing${about === '' ? '' : `: ${about}`}`,
  }));
  throw invalidInput(problems);
}

/** Replaces the property names in a validation error of the service with flag names. Returns other errors unchanged. */
export function inFlags(error: unknown, { kinds }: Flags): unknown {
  const issues = error instanceof PlatformError ? error.details.issues : undefined;
  if (!(error instanceof PlatformError) || error.code !== 'VALIDATION_ERROR' || !Array.isArray(issues))
    return error;
  const problems = (issues as Array<{ path: string; message: string }>).map(({ path, message }) => {
    const [name = '', ...rest] = path.split('.');
    const flag = Object.hasOwn(kinds, name) ? `--${kebab(name)}` : `--${INPUT_FLAG} ${name}`.trimEnd();
    return { path: [flag, ...rest].join('.'), message };
  });
  return invalidInput(problems, { issues });
}

function invalidInput(
  problems: Array<{ path: string; message: string }>,
  details: Record<string, unknown> = {},
): PlatformError {
  return new PlatformError('VALIDATION_ERROR', problems.map(argumentProblem).join('\n'), {
    details: { problems, ...details },
  });
}

async function givenInput(
  args: Readonly<Record<string, unknown>>,
  { kinds }: Flags,
  cwd: string,
): Promise<unknown> {
  const whole =
    args[INPUT_FLAG] === undefined
      ? undefined
      : await readJson(`--${INPUT_FLAG}`, String(args[INPUT_FLAG]), cwd);
  const given = Object.entries(args).filter(([name, value]) => name !== INPUT_FLAG && value !== undefined);
  if (given.length === 0) return whole ?? {};
  if (whole !== undefined && !isRecord(whole)) {
    throw new UsageError('--input: must be a JSON object when combined with other flags.');
  }
  const values = given.map(([name, value]) => [
    name,
    kinds[name] === 'json' ? parse(String(value), name) : value,
  ]);
  return { ...whole, ...Object.fromEntries(values) };
}

function kindOf({ type, items }: JsonSchema): Kind {
  const types = [type].flat().filter((name) => name !== 'null');
  if (types.length !== 1) return 'json';
  const [only] = types;
  if (only === 'string' || only === 'boolean') return only;
  if (only === 'number' || only === 'integer') return 'number';
  return only === 'array' && isRecord(items) && items.type === 'string' ? 'list' : 'json';
}

function flagSchema(kind: Kind): z.ZodType {
  if (kind === 'number') return z.coerce.number();
  if (kind === 'boolean') return z.boolean();
  if (kind === 'list') return z.array(z.string());
  return z.string();
}

function describe({ description, default: fallback, enum: choices }: JsonSchema, kind: Kind, must: boolean) {
  return [
    typeof description === 'string' ? description : '',
    Array.isArray(choices) ? `one of ${choices.map(String).join(', ')}` : '',
    kind === 'list' ? 'may be given more than once' : '',
    fallback === undefined ? '' : `default: ${JSON.stringify(fallback)}`,
    must ? 'required' : '',
  ]
    .filter((part) => part !== '')
    .join('; ');
}

/**
 * Resolves a `$ref` to the `$defs` of the same schema. The number of steps is limited, because references can be
 * circular.
 */
function follow(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let current = schema;
  for (let steps = 0; steps < 8 && typeof current.$ref === 'string'; steps++) {
    const name = /^#\/\$defs\/(.+)$/.exec(current.$ref)?.[1];
    const next = name !== undefined && isRecord(root.$defs) ? root.$defs[name] : undefined;
    if (!isRecord(next)) return {};
    current = next;
  }
  return current;
}

function parse(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--${kebab(name)}: must be JSON: ${messageOf(error)}`);
  }
}

function isRecord(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function camel(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
