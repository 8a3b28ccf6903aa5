import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { glob } from 'tinyglobby';
import type { WorkflowFault } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import { fileStamp } from '../../plugins/index.ts';
import { readDefinition, type TextFault } from './domain/definition/definition-text.ts';
import type { FoundDefinition } from './domain/definition/definitions.ts';

export interface FoundFiles {
  found: FoundDefinition[];
  faults: WorkflowFault[];
}

/**
 * Reads the definition files that match the `workflows` patterns of the config. Each file holds one YAML or JSON
 * definition.
 */
export async function readWorkflowFiles(projectDir: string, patterns: string[]): Promise<FoundFiles> {
  const files = await filesOf(projectDir, patterns);
  const found: FoundDefinition[] = [];
  const faults: WorkflowFault[] = [];
  for (const file of files.toSorted()) {
    const source = relative(projectDir, file);
    try {
      const { definition, faults: ofText, locate } = readDefinition(await readFile(file, 'utf8'));
      if (ofText.length > 0) faults.push(...ofText.map((fault) => inFile(source, fault)));
      else found.push({ source, definition, locate: (issue) => inFile(source, locate(issue)) });
    } catch (error) {
      faults.push({ source, path: '', message: messageOf(error) });
    }
  }
  return { found, faults };
}

/** Returns a change stamp for each definition file. The stamp changes when the file is rewritten. */
export async function workflowFileStamps(
  projectDir: string,
  patterns: string[],
): Promise<Map<string, string>> {
  const files = await filesOf(projectDir, patterns);
  return new Map(files.map((file) => [file, fileStamp(file)]));
}

function filesOf(projectDir: string, patterns: string[]): Promise<string[]> {
  return glob(patterns, { cwd: projectDir, absolute: true, expandDirectories: false });
}

/** Appends the line and column of a fault to the source path, as in `workflows/ship.yaml:12:5`. */
function inFile(source: string, { path, message, line, column, text }: TextFault): WorkflowFault {
  if (line === undefined) return { source, path, message };
  return { source: `${source}:${line}:${column}`, path, message, ...(text ? { text } : {}) };
}
