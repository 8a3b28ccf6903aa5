import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { HEADERS, NamespaceId, SecretName } from '../../../contracts/index.ts';
import type { CallOptions } from '../../../http/client.ts';
import { days } from '../../../kit/time/duration.ts';
import { CancelledError } from '../../confirm.ts';
import type { CommandContext } from '../../context.ts';
import { UsageError } from '../../parse-args.ts';

export const nameArg = SecretName.describe('name of the secret');

/** Does the same as the global flag `--namespace`. */
export const tenantFlag = NamespaceId.optional()
  .describe('namespace of the secret; default: that of the token')
  .meta({ placeholder: 'id' });

export function inTenant(tenant: string | undefined): CallOptions {
  return tenant === undefined ? {} : { headers: { [HEADERS.namespace]: tenant } };
}

/** Reads the value from stdin, without the newline that shells append, or at a prompt that does not show it. */
export async function readValue(context: CommandContext, name: string): Promise<string> {
  if (!process.stdin.isTTY) {
    const value = (await text(process.stdin)).replace(/\r?\n$/, '');
    if (value === '')
      throw new UsageError('The value is read from stdin, which was empty.', { hint: hintFor(name) });
    return value;
  }
  if (!context.globals.input || context.globals.json || !context.ui.interactive)
    throw new UsageError('The value is read from stdin, which is a terminal.', { hint: hintFor(name) });
  const { password, isCancel } = await import('@clack/prompts');
  const typed = await password({ message: `Value of ${name}`, output: process.stderr });
  if (isCancel(typed)) throw new CancelledError();
  return typed;
}

const hintFor = (name: string): string => `svc secrets set ${name} < file`;

/** Expiry as a date, or as a number of days such as `90d`. */
export const expiresFlag = z
  .string()
  .refine(
    (given) => /^\d{1,5}d$/.test(given) || !Number.isNaN(Date.parse(given)),
    'must be a date such as 2031-06-30, or days such as 90d',
  )
  .optional()
  .describe('when the value stops working at its service: a date, or days such as 90d; for alerts only')
  .meta({ placeholder: 'time' });

export function expiryOf(given: string | undefined, now: number): number | null {
  if (given === undefined) return null;
  return given.endsWith('d') ? now + days(Number.parseInt(given, 10)) : Date.parse(given);
}
