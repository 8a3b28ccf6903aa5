import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/kit/files/paths.ts';

/** Instructions of a stage of the Dockerfile that configure its image; those of the stages before it included. */
export function configOf(target: string): string[] {
  const text = readFileSync(join(packageRoot, 'Dockerfile'), 'utf8').replace(/\\\n/g, ' ');
  const stages = new Map<string, { from: string; lines: string[] }>();
  let lines: string[] = [];
  for (const line of text.split('\n')) {
    const [, from, name] = /^FROM (\S+) AS (\S+)$/.exec(line) ?? [];
    if (from && name) {
      lines = [];
      stages.set(name, { from, lines });
    } else if (/^(?:ENV|USER|WORKDIR|VOLUME|STOPSIGNAL|ENTRYPOINT|CMD) /.test(line)) lines.push(line);
  }
  const instructionsOf = (name: string): string[] => {
    const stage = stages.get(name);
    return stage ? [...instructionsOf(stage.from), ...stage.lines] : [];
  };
  return instructionsOf(target).flatMap((line) =>
    line.startsWith('ENV ')
      ? line
          .slice(4)
          .split(' ')
          .map((pair) => `ENV ${pair}`)
      : [line],
  );
}
