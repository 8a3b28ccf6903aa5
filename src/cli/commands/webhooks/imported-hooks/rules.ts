import type { z } from 'zod';
import type { WebhookAuthConfig } from '../../../../contracts/index.ts';
import type { HookMatch, HookRule } from './hooks-file.ts';

/** A trigger rule, divided into the proof of the sender and the conditions that remain. */
export interface DividedRule {
  auth: z.input<typeof WebhookAuthConfig>;
  /** Place of a secret that the plugin's validator compares, if `auth` is a validator. */
  token?: { source: 'url' | 'payload'; name: string };
  /** The secret in the file. Undefined if the rule contains none. */
  secret: string | undefined;
  /** Conditions that do not prove the sender. All must hold. */
  conditions: HookRule[];
  notes: string[];
}

/** Reason why a hook cannot be carried over. */
export class NotCarriedOver extends Error {}

const HMAC = /^payload-(?:hmac|hash)-sha(1|256|512)$/;
/** Names of values that contain a secret. */
const SECRET_NAME = /token|secret|passw|key|auth|signature|credential/i;
const CONDITIONS = new Set(['value', 'regex', 'ip-whitelist']);
const OWN_HEADER = 'x-hook-secret';

/**
 * Divides a trigger rule. All parts of a rule's outermost `and` must hold, so one of them can prove the sender and
 * others can limit the addresses. Throws NotCarriedOver for a rule whose signature is an alternative or is negated.
 */
export function divideRule(rule: HookRule | undefined): DividedRule {
  const parts = rule === undefined ? [] : conjuncts(rule);
  const proof = parts.find(isSignature) ?? parts.find(isSecretValue);
  const addresses = parts.flatMap((part) => addressesOf(part) ?? []);
  const conditions = parts.filter((part) => part !== proof && addressesOf(part) === undefined);
  for (const condition of conditions) requireConditions(condition);
  const ipAllow = addresses.length === 0 ? {} : { ipAllow: addresses };
  const proven = proofOf(proof);
  return {
    ...proven,
    auth: { ...proven.auth, ...ipAllow } as DividedRule['auth'],
    conditions,
    notes: [...proven.notes, ...conditions.flatMap(secretNames).map(copiedNote)],
  };
}

function conjuncts(rule: HookRule): HookRule[] {
  return 'and' in rule ? rule.and.flatMap(conjuncts) : [rule];
}

function isSignature(rule: HookRule): boolean {
  return 'match' in rule && HMAC.test(rule.match.type) && rule.match.parameter?.source === 'header';
}

function isSecretValue(rule: HookRule): boolean {
  if (!('match' in rule) || rule.match.type !== 'value') return false;
  const { parameter, value } = rule.match;
  return value !== undefined && parameter !== undefined && SECRET_NAME.test(parameter.name);
}

/** Returns the names of the values in a condition that look like secrets. Conditions are copied into the plugin. */
function secretNames(rule: HookRule): string[] {
  if ('and' in rule) return rule.and.flatMap(secretNames);
  if ('or' in rule) return rule.or.flatMap(secretNames);
  if ('not' in rule) return secretNames(rule.not);
  return isSecretValue(rule) ? [rule.match.parameter!.name] : [];
}

const copiedNote = (name: string): string =>
  `hooks.json of the plugin contains the value that ${JSON.stringify(name)} must have: if it is a secret, keep the file private, or remove the condition`;

/** Returns the ranges of a rule that consists of address ranges only, or undefined for other rules. */
function addressesOf(rule: HookRule): string[] | undefined {
  if ('or' in rule) {
    const each = rule.or.map(addressesOf);
    return each.includes(undefined) ? undefined : each.flatMap((ranges) => ranges ?? []);
  }
  if (!('match' in rule) || rule.match.type !== 'ip-whitelist') return undefined;
  return (rule.match['ip-range'] ?? '').split(/\s+/).filter((range) => range !== '');
}

function proofOf(proof: HookRule | undefined): Omit<DividedRule, 'conditions'> {
  if (!proof || !('match' in proof)) return withoutProof();
  const { match } = proof;
  if (match.type !== 'value') return signatureOf(match);
  const { source, name } = match.parameter!;
  const secret = match.value;
  if (source === 'header') return { auth: { type: 'secret', header: name.toLowerCase() }, secret, notes: [] };
  if (source === 'url' || source === 'query')
    return { auth: VALIDATOR, token: { source: 'url', name }, secret, notes: [] };
  if (source === 'payload') return { auth: VALIDATOR, token: { source, name }, secret, notes: [] };
  return withoutProof();
}

const VALIDATOR = { type: 'custom', validator: 'hooks.js#isAllowed' } as unknown as DividedRule['auth'];

function withoutProof(): Omit<DividedRule, 'conditions'> {
  const notes = [
    `its rule proves no sender: senders must add the header ${OWN_HEADER} with the secret, or change "auth" in the manifest`,
  ];
  return { auth: { type: 'secret', header: OWN_HEADER }, secret: undefined, notes };
}

function signatureOf({ type, parameter, secret }: HookMatch): Omit<DividedRule, 'conditions'> {
  const bits = HMAC.exec(type)![1] as '1' | '256' | '512';
  const header = parameter!.name.toLowerCase();
  const isPrefixed = /hub-signature/.test(header);
  const notes = isPrefixed
    ? []
    : [
        `the signature in ${header} must be plain hex; if the sender writes "sha${bits}=" before it, add this as "prefix" in the manifest`,
      ];
  return {
    auth: {
      type: 'signature',
      algorithm: `hmac-sha${bits}`,
      signature: { header, ...(isPrefixed ? { prefix: `sha${bits}=` } : {}), encoding: 'hex' },
    },
    secret,
    notes,
  };
}

/** Throws NotCarriedOver if a rule contains more than conditions that the plugin can evaluate. */
function requireConditions(rule: HookRule): void {
  if (!('match' in rule)) {
    const parts = 'and' in rule ? rule.and : 'or' in rule ? rule.or : [rule.not];
    for (const part of parts) requireConditions(part);
    return;
  }
  const { type, regex } = rule.match;
  if (HMAC.test(type))
    throw new NotCarriedOver(
      'its rule has several signatures, or one that is an alternative or negated; a webhook has one secret (and during a rotation the previous one)',
    );
  if (!CONDITIONS.has(type))
    throw new NotCarriedOver(`its rule has a match of the type ${JSON.stringify(type)}`);
  if (type === 'regex') requireRegex(regex ?? '');
}

function requireRegex(regex: string): void {
  try {
    regexOf(regex);
  } catch {
    throw new NotCarriedOver(
      `JavaScript has no equivalent of the regular expression ${JSON.stringify(regex)}`,
    );
  }
}

/** Converts a regular expression of Go. Flags at the start, such as `(?i)`, become flags of JavaScript. */
export function regexOf(regex: string): { source: string; flags: string } {
  const [, flags = '', source = regex] = /^\(\?([ims]+)\)(.*)$/s.exec(regex) ?? [];
  new RegExp(source, flags);
  return { source, flags };
}
