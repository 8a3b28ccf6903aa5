import { PlatformError } from '../../../../kit/errors/errors.ts';
import { compileDefinition } from './compile-definition.ts';
import type { CompiledWorkflow, KindOf } from './compiled-workflow.ts';
import type { ReportedIssue } from './definition-faults.ts';
import { readDefinition, type TextFault } from './definition-text.ts';

export interface CheckedDefinition {
  /** The compiled workflow. Undefined if the definition has faults. */
  workflow?: CompiledWorkflow;
  /** All faults, ordered by position in the text. */
  faults: TextFault[];
}

/** Parses and compiles a definition file in YAML or JSON. Each fault contains its line and column. */
export function checkDefinition(text: string, kindOf: KindOf): CheckedDefinition {
  const { definition, faults, locate } = readDefinition(text);
  if (faults.length > 0) return { faults };
  try {
    return { workflow: compileDefinition(definition, kindOf), faults: [] };
  } catch (error) {
    if (!(error instanceof PlatformError) || !Array.isArray(error.details.issues)) throw error;
    return { faults: inOrder((error.details.issues as ReportedIssue[]).map(locate)) };
  }
}

export function inOrder(faults: TextFault[]): TextFault[] {
  return faults.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
}
