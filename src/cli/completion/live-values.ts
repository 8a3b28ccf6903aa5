import { SERVICE_NAMES } from '../../contracts/index.ts';
import { parseGlobals } from '../parse-args.ts';
import type { Candidate } from './candidate.ts';

export interface ValueRequest {
  /** Name of the command, such as `webhooks provision`. */
  command: string;
  /** Key of the argument, such as `event`. */
  argument: string;
  /** Positional values before the argument. */
  given: readonly string[];
  /** All words before the argument, including the flags that select the gateway. */
  before: readonly string[];
}

/**
 * Maps command and argument to a key of `LISTS`. `*` stands for any command. An exact match takes precedence over `*`.
 */
const SOURCES: Readonly<Record<string, string>> = {
  '* plugin': 'plugins',
  '* event': 'webhookEvents',
  '* instance': 'webhookInstances',
  '* run': 'runs',
  '* job': 'jobs',
  '* schedule': 'schedules',
  'workflows run workflow': 'workflows',
  'workflows runs workflow': 'workflows',
  'run command': 'pluginCommands',
  'hosts show host': 'hosts',
  'hosts revoke host': 'hosts',
  'clients revoke client': 'clients',
  'tokens revoke id': 'tokens',
  'webhooks show id': 'deliveries',
  'webhooks replay id': 'deliveries',
};

/** Values of arguments that are available without a request to the gateway. */
const FIXED: Readonly<Record<string, () => Candidate[] | Promise<Candidate[]>>> = {
  'restart service': () => SERVICE_NAMES.map((value) => ({ value })),
  'start service': () => SERVICE_NAMES.map((value) => ({ value })),
  'logs service': () => [...SERVICE_NAMES, 'supervisor'].map((value) => ({ value })),
  'explain code': async () =>
    (await import('../documented-codes.ts'))
      .readExplanations()
      .map(({ code, meaning }) => ({ value: code, description: meaning })),
};

/** Returns the possible values of an argument, or undefined if the argument has no list of values. */
export async function liveValues(request: ValueRequest): Promise<Candidate[] | undefined> {
  const { command, argument, given, before } = request;
  const fixed = FIXED[`${command} ${argument}`];
  if (fixed) return fixed();
  const source = SOURCES[`${command} ${argument}`] ?? SOURCES[`* ${argument}`];
  if (!source) return undefined;
  const { fetchedValues } = await import('./fetched-values.ts');
  return fetchedValues(source, given, parseGlobals(before));
}
