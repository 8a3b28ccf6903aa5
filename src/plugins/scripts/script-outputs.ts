import { PlatformError } from '../../kit/errors/errors.ts';

export const MAX_OUTPUT_FILE_BYTES = 1024 * 1024;
const MAX_OUTPUTS = 256;
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/**
 * Parses the output file of a script: lines `name=value`, or `name<<DELIMITER`, the lines of the value and `DELIMITER`.
 * A later value replaces an earlier one. Throws STEP_FAILED for any other content.
 */
export function parseOutputs(text: string): Record<string, string> {
  const outputs = new Map<string, string>();
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    if (line.trim() === '') continue;
    const { name, value, last } = outputAt(lines, at);
    if (!NAME.test(name))
      throw invalid(at, `"${name.slice(0, 80)}" is not a name of letters, digits, "_" and "-"`);
    outputs.set(name, value);
    if (outputs.size > MAX_OUTPUTS) throw invalid(at, `there are more than ${MAX_OUTPUTS} outputs`);
    at = last;
  }
  return Object.fromEntries(outputs);
}

/** Returns the output that begins at a line, and the index of its last line. */
function outputAt(lines: readonly string[], at: number): { name: string; value: string; last: number } {
  const line = lines[at]!;
  const block = /^([^=<]+)<<(\S+)$/.exec(line);
  if (block) {
    const [, name, delimiter] = block;
    const end = lines.indexOf(delimiter!, at + 1);
    if (end === -1) throw invalid(at, `the delimiter "${delimiter!.slice(0, 80)}" does not follow`);
    return { name: name!, value: lines.slice(at + 1, end).join('\n'), last: end };
  }
  const equals = line.indexOf('=');
  if (equals === -1) throw invalid(at, 'it is neither name=value nor name<<DELIMITER');
  return { name: line.slice(0, equals), value: line.slice(equals + 1), last: at };
}

function invalid(at: number, why: string): PlatformError {
  return new PlatformError('STEP_FAILED', `Line ${at + 1} of $SVC_OUTPUT is not an output: ${why}.`, {
    details: { reason: 'output', line: at + 1 },
  });
}
