/** Returns the terminal width, or 80 if the width is unknown. Node reports 0 under `docker run -t` in a script. */
export function columnsOf({ columns }: { columns?: number }): number {
  return columns || 80;
}

/** Returns the width of the terminal for help, limited to between 40 and 100 columns for readability. */
export function helpWidth(stream: { columns?: number }): number {
  return Math.min(Math.max(columnsOf(stream), 40), 100);
}

/**
 * Returns the maximum line width for wrapped text. The width is infinite for pipes, so that programs receive unwrapped
 * lines.
 */
export function lineWidth(stream: { isTTY?: boolean; columns?: number }): number {
  return stream.isTTY ? helpWidth(stream) : Number.POSITIVE_INFINITY;
}

/** Wraps a line at spaces and keeps its indentation. Words longer than `width` are not broken. */
export function wrap(text: string, width: number): string[] {
  if (text.length <= width) return [text];
  const indent = /^ */.exec(text)![0];
  const lines: string[] = [];
  let line = '';
  for (const word of text.slice(indent.length).split(' ')) {
    if (line !== '' && indent.length + widthOf(line) + 1 + widthOf(word) > width) {
      lines.push(indent + line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, indent + line];
}

/** Wraps all lines except indented lines, which contain commands or paths to copy. */
export function wrapProse(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => (line.startsWith(' ') ? [line] : wrap(line, width)))
    .join('\n');
}

/** Returns the number of characters without colour codes. */
export function widthOf(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape character starts a colour
  return text.replace(/\u001b\[[\d;]*m/g, '').length;
}

/** Formats names and descriptions in two columns. Long descriptions wrap within their column. */
export function definitions(rows: ReadonlyArray<readonly [string, string]>, width: number): string[] {
  const left = Math.min(Math.max(0, ...rows.map(([name]) => name.length)), 26);
  return rows.flatMap(([name, text]) => {
    const [first = '', ...others] = text.split('\n').flatMap((line) => wrap(line, width - left - 4));
    const indented = others.map((line) => `${' '.repeat(left + 4)}${line}`);
    // A name that is wider than its column gets a separate line.
    return name.length > left
      ? [`  ${name}`, `${' '.repeat(left + 4)}${first}`, ...indented]
      : [`  ${name.padEnd(left)}  ${first}`.trimEnd(), ...indented];
  });
}

/** Wraps a command line with backslashes, so that the wrapped text can be copied. */
export function shellExample(example: string, width: number, indent = '  '): string[] {
  const lines = [`${indent}$`];
  for (const part of partsOf(example)) {
    const last = lines.at(-1)!;
    if (last.length + part.length + 3 > width) {
      lines[lines.length - 1] = `${last} \\`;
      lines.push(`${indent}    ${part}`);
    } else lines[lines.length - 1] = `${last} ${part}`;
  }
  return lines;
}

/**
 * Splits a command line into parts that must stay on one line. Such parts are quoted words, placeholders, and flags
 * with their values.
 */
function partsOf(example: string): string[] {
  const words = example.match(/(?:[^\s'"<]|'[^']*'|"[^"]*"|<[^>]*>|<)+/g) ?? [];
  const parts: string[] = [];
  for (const [index, word] of words.entries()) {
    const afterFlag = words[index - 1]?.startsWith('--') && !word.startsWith('-');
    if (afterFlag) parts.push(`${parts.pop()} ${word}`);
    else parts.push(word);
  }
  return parts;
}
