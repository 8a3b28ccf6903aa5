import { SERVICE_NAMES } from '../../contracts/index.ts';
import { parseGlobals } from '../parse-args.ts';
import type { Candidate } from './complete.ts';

export interface Wanted {
  /** `webhooks provision`. */
  command: string;
  /** The argument's key: `event`. */
  argument: string;
  /** What stands before it by place. */
  given: readonly string[];
  /** Everything before it, for the flags that say which gateway to ask. */
  before: readonly string[];
}

/** Which list knows the values of an argument; `*` is every command. The more exact row wins. */
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

/** Known without asking anybody. */
const FIXED: Readonly<Record<string, () => Candidate[] | Promise<Candidate[]>>> = {
  'restart service': () => SERVICE_NAMES.map((value) => ({ value })),
  'logs service': () => [...SERVICE_NAMES, 'supervisor'].map((value) => ({ value })),
  'explain code': async () =>
    (await import('../code-pages.ts'))
      .readExplanations()
      .map(({ code, meaning }) => ({ value: code, description: meaning })),
};

/** The values that an argument could have now; undefined when no list knows them. */
export async function liveValues(wanted: Wanted): Promise<Candidate[] | undefined> {
  const { command, argument, given, before } = wanted;
  const fixed = FIXED[`${command} ${argument}`];
  if (fixed) return fixed();
  const source = SOURCES[`${command} ${argument}`] ?? SOURCES[`* ${argument}`];
  if (!source) return undefined;
  const { askedValues } = await import('./asked-values.ts');
  return askedValues(source, given, parseGlobals(before));
}
