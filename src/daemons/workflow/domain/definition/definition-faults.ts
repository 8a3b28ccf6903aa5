import type { z } from 'zod';
import { keysAt } from '../../../../kit/data/schema-keys.ts';
import { problemsOf, valueAt } from '../../../../kit/data/schema-problems.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { type DefinitionIssue, formatPath, MAX_ISSUES, type Path, TemplateError } from './templates.ts';

/** A fault in an API error. `line` and `column` count from 1 within the text at `path`. */
export interface ReportedIssue {
  path: string;
  message: string;
  line?: number;
  column?: number;
}

/** Returns whether a definition is missing from the store or cannot be compiled. A retry cannot fix such an error. */
export function isLostDefinition(error: unknown): error is PlatformError {
  return error instanceof PlatformError && error.code !== 'STORE_ERROR';
}

/** Converts schema errors to issues, with suggestions for misspelt keys. */
export function schemaIssues({ issues }: z.ZodError, written: unknown, schema: z.ZodType): DefinitionIssue[] {
  const told = issues
    .slice(0, MAX_ISSUES)
    .map((issue) =>
      issue.code === 'unrecognized_keys' ? { ...issue, keys: issue.keys.slice(0, MAX_ISSUES) } : issue,
    );
  return problemsOf(told, written, (path) => keysAt(schema, path))
    .slice(0, MAX_ISSUES)
    .map(({ path, message }) => ({ path: path as Path, message }));
}

/** Returns a VALIDATION_ERROR whose `details.issues` contains up to `MAX_ISSUES` faults and their paths. */
export function invalidDefinition(issues: DefinitionIssue[], written: unknown): PlatformError {
  const told = issues
    .slice(0, MAX_ISSUES)
    .map((issue) => toReported({ ...issue, path: writtenPath(issue.path, written) }, written));
  const [first] = told;
  const more = told.length > 1 ? ` (and ${told.length - 1} more, see details.issues)` : '';
  const place = first!.line ? `${first!.path}:${first!.line}:${first!.column}` : first!.path;
  return new PlatformError(
    'VALIDATION_ERROR',
    `The workflow definition is not valid: ${place}: ${first!.message}${more}`,
    {
      details: { issues: told },
    },
  );
}

/** Length of the path of a step: `jobs`, its job, `steps`, its index. */
const STEP_PARTS = 4;

/** Formats the path of a fault as the definition is written. */
export function reportedPath(path: Path, written: unknown): string {
  return formatPath(writtenPath(path, written));
}

/**
 * Returns the path of a fault as its part is written. `sleep: 24h` is compiled as `with: {for: 24h}`, `run: …` as
 * `with: {script: …}`, and one webhook or handler of ended runs as a list.
 */
function writtenPath(path: Path, written: unknown): Path {
  const [part, kind, index, ...within] = path;
  if (part === 'on' && typeof index === 'number')
    return Array.isArray(valueAt(written, [part, kind!])) ? path : [part, kind!, ...within];
  const [field, key, ...rest] = path.slice(STEP_PARTS);
  if (path[0] !== 'jobs' || field !== 'with' || key === undefined) return path;
  const step = path.slice(0, STEP_PARTS);
  const { sleep, run } = valueAt(written, step) as { sleep?: unknown; run?: unknown };
  if (sleep !== undefined && key === 'for') return [...step, 'sleep', ...rest];
  return run === undefined ? path : [...step, key === 'script' ? 'run' : key, ...rest];
}

function toReported({ path, message, offset }: DefinitionIssue, written: unknown): ReportedIssue {
  const text = valueAt(written, path);
  if (offset === undefined || typeof text !== 'string') return { path: formatPath(path), message };
  const before = text.slice(0, offset).split('\n');
  return { path: formatPath(path), message, line: before.length, column: before.at(-1)!.length + 1 };
}

/** Converts a TemplateError to the matching API error. Returns other errors unchanged. */
export function expressionFault(error: unknown, details: Record<string, unknown> = {}): unknown {
  if (!(error instanceof TemplateError)) return error;
  const code = error.isLimit ? 'EXPRESSION_LIMIT_EXCEEDED' : 'VALIDATION_ERROR';
  return new PlatformError(code, error.message, { details });
}
