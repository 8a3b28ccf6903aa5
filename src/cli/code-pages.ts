import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isPlatformCode } from '../contracts/index.ts';
import { packageRoot } from '../kit/paths.ts';
import { EXIT, EXIT_BY_CODE } from './exit-codes.ts';

/** What one code means, wherever it is met. */
export interface Explanation {
  code: string;
  kind: 'error' | 'reason' | 'refusal' | 'exit';
  /** What happened. */
  meaning: string;
  /** What to do about it, where the page says. */
  remedy?: string;
  /** HTTP status of an error. */
  status?: number;
  /** Exit code of a command that fails with this error. */
  exitCode?: number;
  /** Where a reason code is used: `auth`, `webhook`. */
  domain?: string;
  /** The page that says so, in the package. */
  page: string;
}

/** Which tables of the documentation explain codes: the pages are the one place where that is written. */
const PAGES: ReadonlyArray<{
  page: string;
  heading: RegExp;
  read(code: string, cells: string[]): Omit<Explanation, 'code' | 'page'>;
}> = [
  {
    page: 'docs/errors.md',
    heading: /^\| Code \| Status \|/,
    read: (code, [status = '', meaning = '', remedy = '']) => ({
      kind: 'error',
      status: Number(status),
      exitCode: (isPlatformCode(code) ? EXIT_BY_CODE[code] : undefined) ?? EXIT.failed,
      meaning,
      remedy,
    }),
  },
  {
    page: 'docs/errors.md',
    heading: /^\| Code \| Meaning \|/,
    read: (_code, [meaning = '']) => ({ kind: 'exit', meaning }),
  },
  {
    page: 'docs/webhooks.md',
    heading: /^\| `reason` /,
    read: (_code, [meaning = '']) => ({
      kind: 'refusal',
      meaning,
      remedy: '`svc webhooks show <id>` shows the delivery, step by step',
    }),
  },
];

const DIAGNOSTICS_PAGE = 'docs/observability.md';

/** Every code that the documentation explains. */
export function readExplanations(): Explanation[] {
  const ofTables = PAGES.flatMap(({ page, heading, read }) =>
    rowsBelow(pageText(page), heading).flatMap(([first = '', ...cells]) =>
      codesOf(first).map((code) => ({ code, ...read(code, cells), page })),
    ),
  );
  return [...ofTables, ...diagnostics(pageText(DIAGNOSTICS_PAGE))];
}

const pageText = (page: string): string => readFileSync(join(packageRoot, page), 'utf8');

/** The reason codes of diagnostics: below a heading for each domain, a list item for each code. */
function diagnostics(text: string): Explanation[] {
  const [section = ''] = text.split('\n## Diagnostics\n').slice(1).join('').split('\n## ');
  return section
    .split('\n### ')
    .slice(1)
    .flatMap((group) => {
      const domain = group.slice(0, group.indexOf('\n'));
      return [...group.matchAll(/^- (`[^:]+`): (.+)$/gm)].flatMap(([, codes = '', meaning = '']) =>
        codesOf(codes).map((code) => ({
          code,
          kind: 'reason' as const,
          domain,
          meaning,
          page: DIAGNOSTICS_PAGE,
        })),
      );
    });
}

/** The rows of the table under that heading row, cell by cell. */
function rowsBelow(text: string, heading: RegExp): string[][] {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => heading.test(line));
  if (start === -1) return [];
  const rows = lines.slice(start + 2);
  const end = rows.findIndex((line) => !line.startsWith('|'));
  return rows.slice(0, end === -1 ? undefined : end).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** A cell may name several codes. */
function codesOf(cell: string): string[] {
  return cell.replaceAll('`', '').split(/, /);
}
