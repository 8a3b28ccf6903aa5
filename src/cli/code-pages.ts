import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isPlatformCode } from '../contracts/index.ts';
import { packageRoot } from '../kit/files/paths.ts';
import { EXIT, EXIT_BY_CODE } from './exit-codes.ts';

/** Documentation of one code. */
export interface Explanation {
  code: string;
  kind: 'error' | 'reason' | 'refusal' | 'exit';
  /** What happened. */
  meaning: string;
  /** What to do, if the page says. */
  remedy?: string;
  /** HTTP status of an error. */
  status?: number;
  /** Exit code of a command that fails with this error. */
  exitCode?: number;
  /** Domain of a reason code: `auth`, `webhook`. */
  domain?: string;
  /** The documentation page, relative to the package. */
  page: string;
}

/** The documentation is the only source of explanations; these tables contain them. */
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

/** Returns all documented codes, in the order of the documentation. */
export function readExplanations(): Explanation[] {
  const ofTables = PAGES.flatMap(({ page, heading, read }) =>
    rowsBelow(pageText(page), heading).flatMap(([first = '', ...cells]) =>
      codesOf(first).map((code) => ({ code, ...read(code, cells), page })),
    ),
  );
  return [...ofTables, ...diagnostics(pageText(DIAGNOSTICS_PAGE))];
}

const pageText = (page: string): string => readFileSync(join(packageRoot, page), 'utf8');

/** Parses the reason codes of diagnostics: one list item per code, below one heading per domain. */
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

/** Returns the rows of the table below a heading row, split into cells. */
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

/** A cell may list several codes. */
function codesOf(cell: string): string[] {
  return cell.replaceAll('`', '').split(/, /);
}
