/** Of a terminal, 80 where there is none or it does not say (0, as in `docker run -t` of a script). */
export function columnsOf({ columns }: { columns?: number }): number {
  return columns || 80;
}

/** As wide as the terminal, never so wide that lines are hard to read. */
export function helpWidth(stream: { columns?: number }): number {
  return Math.min(Math.max(columnsOf(stream), 40), 100);
}

/** Of a terminal; infinite where lines stay whole, for programs that read them. */
export function lineWidth(stream: { isTTY?: boolean; columns?: number }): number {
  return stream.isTTY ? helpWidth(stream) : Number.POSITIVE_INFINITY;
}

/** Lines of at most `width` visible characters, broken at blanks and indented alike; a word that is longer stays whole. */
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

/** Prose within a terminal. Lines that are indented stay as they are: they are there to be copied. */
export function wrapProse(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => (line.startsWith(' ') ? [line] : wrap(line, width)))
    .join('\n');
}

/** How many characters are seen of it. */
export function widthOf(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape character starts a colour
  return text.replace(/\u001b\[[\d;]*m/g, '').length;
}

/** Names on the left, what they mean on the right, wrapped within its column. */
export function definitions(rows: ReadonlyArray<readonly [string, string]>, width: number): string[] {
  const left = Math.min(Math.max(0, ...rows.map(([name]) => name.length)), 26);
  return rows.flatMap(([name, text]) => {
    const [first = '', ...others] = text.split('\n').flatMap((line) => wrap(line, width - left - 4));
    const indented = others.map((line) => `${' '.repeat(left + 4)}${line}`);
    // A name that is wider than the column has a line of its own.
    return name.length > left
      ? [`  ${name}`, `${' '.repeat(left + 4)}${first}`, ...indented]
      : [`  ${name.padEnd(left)}  ${first}`.trimEnd(), ...indented];
  });
}

/** A command line that a shell takes as it stands: continued with a backslash where it is too long. */
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

/** What stays on one line: quoted words, placeholders, a flag with its value. */
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
