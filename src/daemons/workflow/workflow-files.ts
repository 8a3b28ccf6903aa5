import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { glob } from 'tinyglobby';
import { isNode, LineCounter, parseDocument } from 'yaml';
import type { WorkflowFault } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors.ts';
import type { FoundDefinition } from './domain/definition/definitions.ts';

export interface FoundFiles {
  found: FoundDefinition[];
  faults: WorkflowFault[];
}

/** An alias may unfold to far more than the file; a definition has no use for many. */
const MOST_ALIASES = 100;

/** Reads the definitions that the config's `workflows` patterns find: YAML or JSON, one a file. */
export async function readWorkflowFiles(projectDir: string, patterns: string[]): Promise<FoundFiles> {
  const files = await glob(patterns, { cwd: projectDir, absolute: true, expandDirectories: false });
  const found: FoundDefinition[] = [];
  const faults: WorkflowFault[] = [];
  for (const file of files.toSorted()) {
    const source = relative(projectDir, file);
    try {
      found.push(parseWorkflowFile(await readFile(file, 'utf8'), source));
    } catch (error) {
      faults.push({ source, path: '', message: messageOf(error) });
    }
  }
  return { found, faults };
}

/** What JSON makes of it: texts of dates, lists of sets. Throws for what has no end. */
function asJson(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value ?? null));
  } catch (error) {
    const why =
      error instanceof RangeError
        ? 'it is nested too deeply'
        : 'an alias (*name) stands within what it refers to';
    throw new Error(`It cannot be written as JSON: ${why}`, { cause: error });
  }
}

/** Throws with line and column for text that is neither YAML nor JSON. */
function parseWorkflowFile(text: string, source: string): FoundDefinition {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter });
  const [error] = document.errors;
  if (error) throw new Error(error.message);
  return {
    source,
    definition: asJson(document.toJS({ maxAliasCount: MOST_ALIASES })),
    locate(path) {
      const parts = [...path.matchAll(/[^.[\]]+/g)].map(([part]) =>
        /^\d+$/.test(part) ? Number(part) : part,
      );
      // The nearest place that is in the file: what is missing has none.
      for (; parts.length > 0; parts.pop()) {
        const node = document.getIn(parts, true);
        if (isNode(node) && node.range) {
          const { line, col } = lineCounter.linePos(node.range[0]);
          return `${line}:${col}`;
        }
      }
      return undefined;
    },
  };
}
