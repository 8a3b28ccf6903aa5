import { existsSync } from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';
import type { z } from 'zod';
import {
  eventSchemaRef,
  MANIFEST_FILE,
  ManifestV3,
  PluginId,
  SOURCES_PLUGIN_ID,
  WebhookAuthConfig,
} from '../../contracts/index.ts';
import { nearest } from '../../kit/data/nearest.ts';
import { keysAt } from '../../kit/data/schema-keys.ts';
import { problemsOf, problemText } from '../../kit/data/schema-problems.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import { version as platformVersion } from '../../kit/files/paths.ts';
import { compileJsonSchema } from '../../kit/schemas/json-schema.ts';
import { mcpServerFaults } from '../mcp/server-faults.ts';
import { readUntrustedFile } from '../untrusted-file.ts';
import { type EvaluateManifest, manifestModuleOf } from './manifest-module.ts';
import { mcpOfferFaults } from './mcp-offers.ts';
import { toolNameFaults } from './tool-names.ts';
import type { PluginFault } from './types.ts';

const MAX_BYTES = 1024 * 1024;
/** Maximum number of reported faults per plugin. A manifest of 1 MiB can contain half a million faults. */
export const MAX_FAULTS = 100;
const MAX_NAME_CHARS = 100;

export const NO_MANIFEST = `The folder has no ${MANIFEST_FILE}, and no package.json that names a manifest module under "svc".`;

export interface ReadManifest {
  manifest?: ManifestV3;
  /** Plugin id, if known. Error messages use the id even if the rest of the manifest is invalid. */
  id?: string;
  faults: PluginFault[];
}

/**
 * Reads and validates the manifest of a plugin. If `svc.plugin.json` is missing, `evaluate` runs the manifest module in
 * the sandbox. `package.json` contains the path of this module under `"svc"`.
 */
export async function readManifest(folder: string, evaluate?: EvaluateManifest): Promise<ReadManifest> {
  const file = join(folder, MANIFEST_FILE);
  const module = await manifestModuleOf(folder);
  if (!existsSync(file)) {
    if (module !== undefined) return evaluated(folder, module, evaluate);
    return broken(NO_MANIFEST);
  }
  let text: string;
  try {
    text = await readUntrustedFile(file, MANIFEST_FILE, MAX_BYTES);
  } catch (error) {
    return broken(messageOf(error));
  }
  let raw: unknown;
  try {
    // Removes a byte-order mark, which is not valid JSON. Some editors write this mark.
    raw = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (error) {
    return broken(`${MANIFEST_FILE} cannot be read as JSON: ${messageOf(error)}`);
  }
  return checkManifest(raw);
}

async function evaluated(
  folder: string,
  module: string,
  evaluate: EvaluateManifest | undefined,
): Promise<ReadManifest> {
  if (!evaluate) return broken(`The manifest is the module ${module}, which cannot run without a sandbox.`);
  try {
    return checkManifest(await evaluate(folder, module));
  } catch (error) {
    return broken(`The manifest module ${module} (package.json: "svc") failed: ${messageOf(error)}`);
  }
}

function broken(message: string): ReadManifest {
  return { faults: [{ code: 'INVALID_MANIFEST', path: '', message }] };
}

export function checkManifest(raw: unknown): ReadManifest {
  const id = PluginId.safeParse((raw as { id?: unknown } | null)?.id);
  const named = id.success ? { id: id.data as string } : {};
  try {
    return { ...named, ...checkedManifest(raw) };
  } catch (error) {
    // Checks of a manifest that nests too deep exceed the stack. Other plugins must load nevertheless.
    return { ...named, ...broken(`The manifest cannot be checked: ${messageOf(error)}`) };
  }
}

function checkedManifest(raw: unknown): ReadManifest {
  const parsed = ManifestV3.safeParse(raw);
  if (!parsed.success) return { faults: limitFaults(issuesOf(parsed.error, raw)) };
  const faults = [
    ...reservedIdFaults(parsed.data),
    ...versionFaults(parsed.data),
    ...duplicateFaults(parsed.data),
    ...eventFaults(parsed.data),
    ...toolNameFaults(parsed.data),
    ...mcpOfferFaults(parsed.data),
    ...mcpServerFaults(parsed.data),
  ];
  return { faults: limitFaults(faults), ...(faults.length === 0 ? { manifest: parsed.data } : {}) };
}

/** Refuses the id under which the deliveries of sources are recorded. @spec docs/sources.md */
function reservedIdFaults({ id }: ManifestV3): PluginFault[] {
  if (id !== SOURCES_PLUGIN_ID) return [];
  const message = `"${SOURCES_PLUGIN_ID}" is reserved for sources of webhooks. Choose another id`;
  return [{ code: 'INVALID_MANIFEST', path: 'id', message }];
}

/**
 * Keeps at most `MAX_FAULTS` faults, and adds a fault with the number of omitted faults if there are more. Always keeps
 * a fault that prevents the gateway from starting.
 */
export function limitFaults(faults: PluginFault[]): PluginFault[] {
  if (faults.length <= MAX_FAULTS) return faults;
  const refusing = faults.find(({ refusesGatewayStart }) => refusesGatewayStart);
  const kept = [...new Set([...(refusing ? [refusing] : []), ...faults])].slice(0, MAX_FAULTS);
  const { code } = kept[0]!;
  return [...kept, { code, path: '', message: `and ${faults.length - kept.length} more faults` }];
}

/** Formats a manifest path in the form `webhooks[0].auth.type`. */
export function formatPath(path: ReadonlyArray<PropertyKey>): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${named(part)}`))
    .join('');
}

/** Truncates a key for error messages, because a key can be as long as the whole manifest. */
function named(key: PropertyKey): string {
  const text = String(key);
  return text.length > MAX_NAME_CHARS ? `${text.slice(0, MAX_NAME_CHARS)}…` : text;
}

/** Validates the manifest value at the path `at`. The paths of the returned faults start at the manifest's root. */
export function faultsAgainst(schema: z.ZodType, part: unknown, at: PropertyKey[]): PluginFault[] {
  const { error } = schema.safeParse(part);
  return error ? issuesOf(error, part, at) : [];
}

function issuesOf({ issues }: z.ZodError, raw: unknown, at: PropertyKey[] = []): PluginFault[] {
  return issues.flatMap((issue): PluginFault[] => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => fault([...at, ...issue.path, key], unknownKey(key, issue.path, at)));
    }
    const value = valueAt(raw, issue.path);
    const message = issue.code === 'invalid_union' ? unionMessage(issue, value) : problemText(issue, value);
    const isComplete = value !== undefined || message.startsWith('is missing');
    return [fault([...at, ...issue.path], isComplete ? message : `is missing: ${message}`)];
  });
}

function fault(path: ReadonlyArray<PropertyKey>, message: string): PluginFault {
  const text = formatPath(path);
  // An invalid auth type prevents the gateway's start, because the webhook would accept unauthenticated requests. @spec
  // Webhook declaration: auth
  const isUnchecked = /^webhooks\[\d+\]\.auth(?:\.type)?$/.test(text);
  return {
    code: 'INVALID_MANIFEST',
    path: text,
    message,
    ...(isUnchecked ? { refusesGatewayStart: true as const } : {}),
  };
}

function unknownKey(key: string, path: ReadonlyArray<PropertyKey>, at: readonly PropertyKey[]): string {
  const whole = [...at, ...path];
  const meant = nearest(key, keysAt(ManifestV3, whole));
  const where = whole.length === 0 ? 'the manifest' : formatPath(whole);
  return `"${named(key)}" is not a key of ${where}${meant ? `; did you mean "${meant}"?` : ''}`;
}

/** Types of a webhook's authentication. */
const AUTH_TYPES = WebhookAuthConfig.options.flatMap(({ shape }) => [...shape.type.values]);

/** Lists the types of `auth`. Other unions have few types, which the documentation lists. */
function typesOf({ path }: z.core.$ZodIssueInvalidUnion): string {
  return path.at(-2) === 'auth' || path.at(-1) === 'auth' ? `: ${AUTH_TYPES.join(', ')}` : '';
}

function unionMessage(issue: z.core.$ZodIssueInvalidUnion, value: unknown): string {
  if (issue.discriminator !== undefined) return `is none of the known types${typesOf(issue)}`;
  const alternatives = issue.errors
    .flatMap((issues) => problemsOf(issues, value).slice(0, 1))
    .map(({ path, message }) => (path.length > 0 ? `${formatPath(path)}: ${message}` : message));
  return alternatives.length > 0 ? `fits no alternative: ${alternatives.join(', or ')}` : issue.message;
}

function valueAt(raw: unknown, path: ReadonlyArray<PropertyKey>): unknown {
  let value = raw;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

function versionFaults({ version, engines, dependencies }: ManifestV3): PluginFault[] {
  const faults: PluginFault[] = [];
  if (!semver.valid(version))
    faults.push(fault(['version'], `"${version}" is not a version such as "1.2.0"`));
  const wanted = engines?.svc;
  if (wanted !== undefined && !semver.validRange(wanted)) {
    faults.push(fault(['engines', 'svc'], `"${wanted}" is not a version range such as "^1.0.0"`));
  } else if (
    wanted !== undefined &&
    !semver.satisfies(platformVersion, wanted, { includePrerelease: true })
  ) {
    faults.push(fault(['engines', 'svc'], `needs svc ${wanted}, this is ${platformVersion}`));
  }
  for (const [id, range] of Object.entries(dependencies)) {
    if (semver.validRange(range)) continue;
    faults.push(fault(['dependencies', id], `"${range}" is not a version range such as "^1.0.0"`));
  }
  return faults;
}

/** Returns a fault for each event type whose JSON Schema in the manifest is unusable. */
function eventFaults({ events }: ManifestV3): PluginFault[] {
  return Object.entries(events).flatMap(([type, event]) => {
    if (!event.schema || eventSchemaRef(event)) return [];
    const reason = unusable(event.schema);
    return reason === undefined
      ? []
      : [fault(['events', type, 'schema'], `is not a JSON Schema that can be used: ${reason}`)];
  });
}

function unusable(schema: object): string | undefined {
  try {
    compileJsonSchema(schema);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Returns a fault for each command, job, webhook or route that the manifest declares twice. */
function duplicateFaults({ commands, jobs, webhooks, rest }: ManifestV3): PluginFault[] {
  const routes = rest?.routes ?? [];
  return [
    ...duplicates(
      commands.map(({ id }) => id),
      (index) => ['commands', index, 'id'],
    ),
    ...duplicates(
      jobs.map(({ id }) => id),
      (index) => ['jobs', index, 'id'],
    ),
    ...duplicates(
      webhooks.map(({ event }) => event),
      (index) => ['webhooks', index, 'event'],
    ),
    ...duplicates(
      routes.map(({ method, path }) => `${method} ${path.replaceAll(/:\w+/g, ':')}`),
      (index) => ['rest', 'routes', index, 'path'],
    ),
  ];
}

function duplicates(names: string[], pathOf: (index: number) => PropertyKey[]): PluginFault[] {
  const seen = new Map<string, number>();
  return names.flatMap((name, index) => {
    const first = seen.get(name);
    if (first !== undefined)
      return [fault(pathOf(index), `is already declared at ${formatPath(pathOf(first))}`)];
    seen.set(name, index);
    return [];
  });
}
