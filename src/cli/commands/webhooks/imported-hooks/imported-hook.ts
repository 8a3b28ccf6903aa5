import type { z } from 'zod';
import type { WebhookHandlerDecl } from '../../../../contracts/index.ts';
import type { Hook, HookArgument, HookRule } from './hooks-file.ts';
import { divideRule, NotCarriedOver, regexOf } from './rules.ts';

/** A hook as a webhook of a plugin. */
export interface ImportedHook {
  id: string;
  declaration: z.input<typeof WebhookHandlerDecl>;
  /** Data that the plugin's handler reads. */
  settings: Record<string, unknown>;
  /** Files and folders that the command needs. */
  reads: string[];
  writes: string[];
  /** The secret in the file, which the operator provisions. */
  secret: string | undefined;
  notes: string[];
}

/** Time limit of a command in ms. The webhook server that the hooks come from has none. */
const COMMAND_TIMEOUT_MS = 300_000;
const KNOWN_SOURCES = new Set([
  ...['header', 'url', 'query', 'payload', 'string', 'request', 'raw-request-body'],
  ...['entire-payload', 'entire-headers', 'entire-query'],
]);
const EVENT = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
/** Folders that the sandbox mounts for programs. */
const MOUNTED = /^\/(?:usr|bin|sbin)\//;

/** Converts a hook. Throws NotCarriedOver with the reason if the platform has no equivalent. */
export function importHook(hook: Hook): ImportedHook {
  if (!EVENT.test(hook.id))
    throw new NotCarriedOver('its id must be one URL segment of letters, digits and . _ : -');
  const rule = divideRule(hook['trigger-rule']);
  const answersAtOnce = !hook['include-command-output-in-response'];
  const body = bodyOf(hook);
  const { reads, writes } = filesOf(hook);
  return {
    id: hook.id,
    declaration: {
      event: hook.id as never,
      handler: 'hooks.js#run' as never,
      auth: rule.auth,
      timeoutMs: COMMAND_TIMEOUT_MS,
      ...(answersAtOnce ? { async: true } : { reply: 'handler' as const }),
      ...(body === 'json' ? {} : { body }),
    },
    settings: {
      command: hook['execute-command'],
      folder: hook['command-working-directory'] ?? null,
      arguments: hook['pass-arguments-to-command'].map(argumentOf),
      environment: hook['pass-environment-to-command'].map(argumentOf),
      files: hook['pass-file-to-command'].map(argumentOf),
      isForm: body === 'form',
      jsonParameters: hook['parse-parameters-as-json'].map(argumentOf),
      conditions: rule.conditions.map(conditionOf),
      ...(rule.token ? { token: rule.token } : {}),
      mismatchStatus: hook['trigger-rule-mismatch-http-response-code'] || 200,
      successStatus: hook['success-http-response-code'] || 200,
      headers: Object.fromEntries(
        hook['response-headers'].map(({ name, value }) => [name.toLowerCase(), value]),
      ),
      showsErrors: hook['include-command-output-in-response-on-error'],
    },
    reads,
    writes,
    secret: rule.secret,
    notes: [...rule.notes, ...notesOf(hook, answersAtOnce)],
  };
}

function argumentOf({ source, name, envname, base64decode }: HookArgument) {
  if (!KNOWN_SOURCES.has(source))
    throw new NotCarriedOver(`it reads a value from the unknown source ${JSON.stringify(source)}`);
  return {
    source: source === 'query' ? 'url' : source,
    name,
    ...(envname ? { envname } : {}),
    ...(base64decode ? { base64decode } : {}),
  };
}

/** Returns a condition with its regular expressions in the form of JavaScript. */
function conditionOf(rule: HookRule): unknown {
  if ('and' in rule) return { and: rule.and.map(conditionOf) };
  if ('or' in rule) return { or: rule.or.map(conditionOf) };
  if ('not' in rule) return { not: conditionOf(rule.not) };
  const { type, value, regex, parameter, 'ip-range': range } = rule.match;
  if (type === 'ip-whitelist') return { addresses: (range ?? '').split(/\s+/).filter(Boolean) };
  if (!parameter) throw new NotCarriedOver(`a match of the type ${type} has no "parameter"`);
  const given = argumentOf(parameter);
  return type === 'regex'
    ? { parameter: given, regex: regexOf(regex ?? '') }
    : { parameter: given, value: value ?? '' };
}

function bodyOf(hook: Hook): 'json' | 'form' {
  const type = hook['incoming-payload-content-type'] ?? '';
  if (/xml/i.test(type))
    throw new NotCarriedOver('it reads XML, whose values have other names on this platform');
  const isForm = /x-www-form-urlencoded/i.test(type);
  const readsField = hook['parse-parameters-as-json'].some(({ source }) => source === 'payload');
  return isForm || (type === '' && readsField) ? 'form' : 'json';
}

function filesOf(hook: Hook): { reads: string[]; writes: string[] } {
  const command = hook['execute-command'];
  const folder = hook['command-working-directory'];
  // The root folder exists in the sandbox, and must not be granted.
  const own = folder && folder !== '/' ? [folder] : [];
  const isPath = command.startsWith('/') && !MOUNTED.test(command);
  return {
    reads: [...(isPath ? [command] : []), ...own],
    writes: own,
  };
}

/** Returns what behaves differently, as sentences without a subject. */
function notesOf(hook: Hook, answersAtOnce: boolean): string[] {
  const methods = hook['http-methods'].map((method) => method.trim().toUpperCase());
  if (methods.length > 0 && !methods.includes('POST'))
    throw new NotCarriedOver(`it takes only ${methods.join(' and ')}; a webhook takes POST`);
  const others = methods.filter((method) => method !== 'POST');
  const unknown = Object.keys(hook).filter((key) => !KNOWN_KEYS.has(key));
  const answer = ['response-message', 'success-http-response-code'].filter((key) => hook[key]);
  if (hook['response-headers'].length > 0) answer.push('response-headers');
  return [
    ...(others.length > 0 ? [`${others.join(' and ')} is not accepted, only POST`] : []),
    ...(unknown.length > 0 ? [`unknown properties were ignored: ${unknown.join(', ')}`] : []),
    ...(answersAtOnce && answer.length > 0
      ? [
          `the answer is 202 {"status":"accepted"} before the command runs, so ${answer.join(', ')} was left out`,
        ]
      : []),
  ];
}

const KNOWN_KEYS = new Set([
  ...['id', 'execute-command', 'command-working-directory', 'response-message', 'response-headers'],
  ...['success-http-response-code', 'incoming-payload-content-type', 'http-methods'],
  ...['include-command-output-in-response', 'include-command-output-in-response-on-error'],
  ...['parse-parameters-as-json', 'pass-arguments-to-command', 'pass-environment-to-command'],
  ...['pass-file-to-command', 'trigger-rule', 'trigger-rule-mismatch-http-response-code'],
  'trigger-signature-soft-failures',
]);
