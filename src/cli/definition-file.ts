import { readFile } from 'node:fs/promises';
import { inOrder } from '../daemons/workflow/domain/definition/check-definition.ts';
import type { ReportedIssue } from '../daemons/workflow/domain/definition/definition-faults.ts';
import {
  type DefinitionText,
  readDefinition,
  type TextFault,
} from '../daemons/workflow/domain/definition/definition-text.ts';
import { PlatformError } from '../kit/errors/errors.ts';

export interface DefinitionFile {
  /**
   * The parsed definition. Despite its type, the value can be any JSON value, because the service rejects definitions
   * that are not objects.
   */
  definition: Record<string, unknown>;
  /** Adds line and column numbers to a validation error of the service. Returns other errors unchanged. */
  withPositions(error: unknown): unknown;
}

/**
 * Reads a workflow definition. Throws VALIDATION_ERROR with all syntax errors. `name` is the path as typed, for
 * messages.
 */
export async function readDefinitionFile(file: string, name: string): Promise<DefinitionFile> {
  const { definition, faults, locate } = readDefinition(await readFile(file, 'utf8'));
  if (faults.length > 0) throw refusal(name, faults);
  return {
    definition: definition as Record<string, unknown>,
    withPositions: (error) => withPositions(error, name, locate),
  };
}

function withPositions(error: unknown, name: string, locate: DefinitionText['locate']): unknown {
  if (!(error instanceof PlatformError) || error.code !== 'VALIDATION_ERROR') return error;
  const issues = error.details.issues as ReportedIssue[] | undefined;
  // Errors in the input of a run have paths that do not refer to the definition.
  if (!issues || !error.message.startsWith('The workflow definition')) return error;
  return refusal(name, inOrder(issues.map(locate)));
}

function refusal(name: string, faults: readonly TextFault[]): PlatformError {
  const head = faults.length === 1 ? '' : `${name} has ${faults.length} problems:\n`;
  return new PlatformError(
    'VALIDATION_ERROR',
    head + faults.map((fault) => faultText(name, fault)).join('\n'),
    { details: { file: name, issues: faults } },
  );
}

/** Formats a problem as `ship.yaml:9:15 jobs.build.steps[0].uses: nothing runs "htp"`, with the source line below. */
export function faultText(source: string, { path, message, line, column, text }: TextFault): string {
  const position = line === undefined ? source : `${source}:${line}:${column}`;
  const headline = `${position}${path === '' ? '' : ` ${path}`}: ${message}`;
  return text ? `${headline}\n    | ${text}` : headline;
}
