import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../kit/time/clock.ts';
import { writePrivateFile } from '../../supervisor/data-folder.ts';
import type { CommandContext } from '../context.ts';
import { createContext } from '../create-context.ts';
import type { GlobalFlags } from '../globals.ts';
import { createStyle } from '../style.ts';
import { createUi } from '../ui.ts';
import type { Candidate } from './candidate.ts';
import { LISTS } from './lists.ts';

/** Cache TTL of completion values. Completions come in bursts, while the lists change slowly. */
const CACHE_TTL_MS = 10_000;
/** Time limit of a request, because users do not wait longer for a completion. */
const FETCH_TIMEOUT_MS = 600;

interface CachedValues {
  at: number;
  values: Candidate[];
}

/** Fetches values from the gateway as the operator, with a short cache. Throws if the gateway does not answer. */
export async function fetchedValues(
  source: string,
  given: readonly string[],
  globals: GlobalFlags,
): Promise<Candidate[]> {
  const list = LISTS[source];
  if (!list) return [];
  const context = contextOf({ ...globals, json: false, quiet: true, input: false });
  const key = JSON.stringify([source, list.needs(given), globals.url, globals.namespace]);
  const file = join(context.folder().run, 'completion.json');
  // Results of an explicit token are not cached, because another token may see less.
  const cache = globals.token === undefined ? readCache(file) : {};
  const now = context.clock.now();
  const fresh = cache[key];
  if (fresh && now - fresh.at < CACHE_TTL_MS && now >= fresh.at) return fresh.values;
  const values = await list.fetchValues(context.client, given, AbortSignal.timeout(FETCH_TIMEOUT_MS));
  if (globals.token !== undefined) return values;
  const recent = Object.entries(cache).filter(([, { at }]) => now - at < CACHE_TTL_MS);
  try {
    writePrivateFile(file, JSON.stringify({ ...Object.fromEntries(recent), [key]: { at: now, values } }));
  } catch {
    // There is no local platform folder to cache in.
  }
  return values;
}

function readCache(file: string): Record<string, CachedValues> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, CachedValues>;
  } catch {
    return {};
  }
}

function contextOf(globals: GlobalFlags): CommandContext {
  const { env, stdout, stderr } = process;
  const style = createStyle({}, env);
  return createContext({
    cwd: process.cwd(),
    env,
    globals,
    ui: createUi({ stdout, stderr, quiet: true, json: false, out: style, err: style }),
    clock: systemClock,
  });
}
