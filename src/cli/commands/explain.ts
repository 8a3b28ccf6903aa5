import { z } from 'zod';
import { nearest } from '../../kit/data/nearest.ts';
import { defineCommand, ok } from '../define-command.ts';
import { type Explanation, readExplanations } from '../documented-codes.ts';
import { UsageError } from '../parse-args.ts';
import type { Style } from '../style.ts';
import { pairs } from '../table.ts';
import { definitions, lineWidth } from '../wrap.ts';

const KINDS: Record<Explanation['kind'], string> = {
  error: 'error code',
  reason: 'reason code of a diagnostic',
  refusal: 'reason why a delivery was refused',
  exit: 'exit code',
};

const PLURALS: Record<Explanation['kind'], string> = {
  error: 'Error codes',
  reason: 'Reason codes of diagnostics',
  refusal: 'Reasons why a delivery was refused',
  exit: 'Exit codes',
};

/** @spec Platform codes; docs/errors.md */
export const explain = defineCommand({
  name: 'explain',
  summary: 'Explain an error, reason or exit code and what to do',
  example: 'svc explain WEBHOOK_NOT_FOUND',
  args: z.object({
    code: z.string().min(1).optional().describe('the code; default: list all'),
  }),
  positionals: ['code'],
  async run({ code }) {
    const known = readExplanations();
    return ok(code === undefined ? { items: known } : find(code, known));
  },
  text: (result: Explanation | { items: Explanation[] }, style) =>
    'items' in result ? listed(result.items, style) : explained(result, style),
});

/**
 * Finds a code without regard to case. An exact match takes precedence, because `unprovisioned` (refusal) and
 * `UNPROVISIONED` (diagnostic) are different codes.
 */
function find(code: string, known: readonly Explanation[]): Explanation {
  const same = (one: string): boolean => one.toLowerCase() === code.toLowerCase();
  const found = known.find((each) => each.code === code) ?? known.find((each) => same(each.code));
  if (found) return found;
  const suggestion = nearest(
    code.toUpperCase(),
    known.map((each) => each.code),
  );
  throw new UsageError(
    `${code} is not a code of the platform.${suggestion ? ` Did you mean ${suggestion}?` : ''}`,
    {
      hint: 'svc explain lists all codes. Codes of plugins are in their manifests: svc plugins show <plugin>.',
    },
  );
}

function explained(
  { code, kind, meaning, remedy, status, exitCode, domain, page }: Explanation,
  style: Style,
): string {
  return [
    `${style.bold(code)}  ${style.dim(KINDS[kind])}`,
    '',
    pairs(
      [
        ['meaning', meaning],
        ...(remedy ? [['what to do', remedy] as [string, string]] : []),
        ...(status === undefined ? [] : [['HTTP status', String(status)] as [string, string]]),
        ...(exitCode === undefined ? [] : [['exit code', String(exitCode)] as [string, string]]),
        ...(domain === undefined ? [] : [['domain', domain] as [string, string]]),
        ['see', page],
      ],
      style,
    ),
  ].join('\n');
}

/** Formats a list of codes, grouped by kind in the order of the documentation. */
function listed(items: readonly Explanation[], style: Style): string {
  const width = lineWidth(process.stdout);
  return [...Map.groupBy(items, ({ kind }) => kind)]
    .map(([kind, ofKind]) =>
      [
        style.bold(PLURALS[kind]),
        ...definitions(
          ofKind.map(({ code, meaning }) => [code, meaning]),
          width,
        ),
      ].join('\n'),
    )
    .join('\n\n');
}
