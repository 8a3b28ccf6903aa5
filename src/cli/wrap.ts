/** As wide as the terminal, 80 where there is none, never so wide that lines are hard to read. */
export function helpWidth({ columns }: { columns?: number }): number {
  return Math.min(Math.max(columns ?? 80, 40), 100);
}

/** Lines of at most `width` characters, broken at blanks; a word that is longer stays whole. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
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
