import { text } from 'node:stream/consumers';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { pairs } from '../../style.ts';
import { timeText } from '../../time-text.ts';

interface Inspected {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
  /** Epoch ms. */
  expiresAt: number | null;
  expired: boolean;
}

/** Reads a token here, without any server: what it says, not whether it is genuine. @spec JWT claims */
export const inspect = defineCommand({
  name: 'tokens inspect',
  summary: 'Show what a JWT says; its signature is not checked',
  example: 'svc tokens inspect - < token.txt',
  args: z.object({ token: z.string().min(1).describe('the token, or - to read it from stdin') }),
  async run({ token }, { clock, ui }) {
    const given = token === '-' ? (await text(process.stdin)).trim() : token;
    const inspected = read(given, clock.now());
    ui.note('The signature was not checked: only the gateway can.');
    return ok(inspected);
  },
  text: ({ claims, expiresAt, expired }: Inspected, style) =>
    pairs(
      [
        ...Object.entries(claims).map(([name, value]): [string, string] => [name, String(value)]),
        ['expires', `${timeText(expiresAt)}${expired ? style.red(' (expired)') : ''}`],
      ],
      style,
    ),
});

function read(token: string, now: number): Inspected {
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
    throw new UsageError('This is no JWT; static and refresh tokens are opaque and say nothing.');
  }
}
