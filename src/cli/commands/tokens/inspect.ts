import { text } from 'node:stream/consumers';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { pairs } from '../../table.ts';
import { timeText } from '../../time-text.ts';

interface InspectedToken {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
  /** Expiry time, in epoch milliseconds. Null if the token does not expire. */
  expiresAt: number | null;
  expired: boolean;
}

/** Decodes a token locally, without verifying it. @spec JWT claims */
export const inspect = defineCommand({
  name: 'tokens inspect',
  summary: 'Decode a JWT without verifying its signature',
  example: 'svc tokens inspect - < token.txt',
  args: z.object({ token: z.string().min(1).describe('the token, or - to read it from stdin') }),
  async run({ token }, { clock, ui }) {
    const given = token === '-' ? (await text(process.stdin)).trim() : token;
    const inspected = read(given, clock.now());
    ui.note('The signature was not verified; only the gateway can do that.');
    return ok(inspected);
  },
  text: ({ claims, expiresAt, expired }: InspectedToken, style) =>
    pairs(
      [
        ...Object.entries(claims).map(([name, value]): [string, string] => [name, String(value)]),
        ['expires', `${timeText(expiresAt)}${expired ? style.red(' (expired)') : ''}`],
      ],
      style,
    ),
});

function read(token: string, now: number): InspectedToken {
  try {
    const claims = decodeJwt(token);
    const expiresAt = claims.exp === undefined ? null : claims.exp * 1000;
    return {
      header: { ...decodeProtectedHeader(token) },
      claims,
      expiresAt,
      expired: expiresAt !== null && expiresAt <= now,
    };
  } catch {
    throw new UsageError('This is not a JWT. Static and refresh tokens are opaque.');
  }
}
