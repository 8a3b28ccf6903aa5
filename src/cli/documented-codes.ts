import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isPlatformCode } from '../contracts/index.ts';
import { packageRoot } from '../kit/files/paths.ts';
import { EXIT, EXIT_BY_CODE } from './exit-codes.ts';

/** Documentation of an error code, a reason code, a refusal code or an exit code. */
export interface Explanation {
  code: string;
  kind: 'error' | 'reason' | 'refusal' | 'exit';
  meaning: string;
  /** How to solve the problem. Absent if the documentation states no remedy. */
  remedy?: string;
  /** HTTP status of an error code. Absent for other kinds of codes. */
  status?: number;
  /** Exit code of a command that fails with this error. */
  exitCode?: number;
  /** Domain of a reason code, such as `auth` or `webhook`. */
  domain?: string;
  /** Path of the documentation page, relative to the package. */
  page: string;
}

const ERRORS_PAGE = 'docs/errors.md';
const WEBHOOKS_PAGE = 'docs/webhooks.md';
const DIAGNOSTICS_PAGE = 'docs/observability.md';

/** Reads all documented codes from the pages in `docs/`. The package contains no other list of explanations. */
export function readExplanations(): Explanation[] {
  const errorsText = pageText(ERRORS_PAGE);
  return [
    ...errors(errorsText),
    ...exitCodes(section(errorsText, '## Exit codes of the command line')),
    ...refusals(section(pageText(WEBHOOKS_PAGE), '### Why was it refused?')),
    ...diagnostics(section(pageText(DIAGNOSTICS_PAGE), '## Diagnostics')),
  ];
}

const pageText = (page: string): string => readFileSync(join(packageRoot, page), 'utf8');

/** Returns the text below a heading, up to the next heading of the same or a higher level. */
function section(text: string, heading: string): string {
  const level = heading.indexOf(' ');
  const rest = text.split(`\n${heading}\n`)[1] ?? '';
  return rest.split(new RegExp(`^#{1,${level}} `, 'm'))[0]!;
}

/** Parses list items such as "- `NOT_FOUND` (404): Meaning. Remedy". */
function errors(text: string): Explanation[] {
  return [...text.matchAll(/^- `([A-Z_]+)` \((\d{3})\): (.+?)\. (.+)$/gm)].map(
    ([, code = '', status, meaning = '', remedy]) => ({
      code,
      kind: 'error',
      status: Number(status),
      exitCode: (isPlatformCode(code) ? EXIT_BY_CODE[code] : undefined) ?? EXIT.failed,
      meaning,
      remedy,
      page: ERRORS_PAGE,
    }),
  );
}

function exitCodes(text: string): Explanation[] {
  return codeItems(text).map((item) => ({ ...item, kind: 'exit', page: ERRORS_PAGE }));
}

function refusals(text: string): Explanation[] {
  const remedy = '`svc webhooks show <id>` shows the delivery, step by step';
  return codeItems(text).map((item) => ({ ...item, kind: 'refusal', remedy, page: WEBHOOKS_PAGE }));
}

/** Parses the diagnostic reason codes from a page with one heading per domain. */
function diagnostics(text: string): Explanation[] {
  return text
    .split('\n### ')
    .slice(1)
    .flatMap((group) => {
      const domain = group.slice(0, group.indexOf('\n'));
      return codeItems(group).map((item) => ({
        ...item,
        kind: 'reason' as const,
        domain,
        page: DIAGNOSTICS_PAGE,
      }));
    });
}

/** Parses list items such as "- `A`, `B`: Meaning" into one entry per code. */
function codeItems(text: string): Array<{ code: string; meaning: string }> {
  return [...text.matchAll(/^- (`[^:]+`): (.+)$/gm)].flatMap(([, codes = '', meaning = '']) =>
    codes
      .replaceAll('`', '')
      .split(', ')
      .map((code) => ({ code, meaning })),
  );
}
