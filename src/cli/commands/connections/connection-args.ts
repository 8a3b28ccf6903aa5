import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { type ClientSecret, ConnectionName } from '../../../contracts/index.ts';
import { UsageError } from '../../parse-args.ts';

export const nameArg = ConnectionName.describe('name of the connection');

export const noWaitFlag = z
  .boolean()
  .default(false)
  .describe('print the link without waiting; --json never waits');

export const scopesFlag = z
  .string()
  .optional()
  .describe('scopes, separated by spaces')
  .meta({ placeholder: 'list' });

export function scopesOf(scopes: string | undefined): { scopes?: string[] } {
  return scopes === undefined ? {} : { scopes: scopes.split(/\s+/).filter(Boolean) };
}

/** Returns the client secret: a stored secret, or stdin without the newline that shells append. */
export async function readClientSecret(
  isStdin: boolean,
  stored: string | undefined,
  command: string,
): Promise<{ clientSecret?: ClientSecret }> {
  if (isStdin && stored !== undefined) throw new UsageError('Pass either --secret-stdin or --secret.');
  if (stored !== undefined) return { clientSecret: { secret: stored } };
  if (!isStdin) return {};
  if (process.stdin.isTTY)
    throw new UsageError('--secret-stdin requires a pipe on stdin.', {
      hint: `pbpaste | svc connections ${command} <name> … --secret-stdin`,
    });
  const secret = (await text(process.stdin)).replace(/\r?\n$/, '');
  if (secret === '') throw new UsageError('--secret-stdin: stdin was empty.');
  return { clientSecret: secret };
}
