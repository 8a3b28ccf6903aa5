import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { llmsFull, llmsIndex } from '../scripts/llms-files.ts';
import { COMMANDS } from '../src/cli/command-table/command-table.ts';
import { agentsText } from '../src/cli/commands/init/agents-file.ts';
import { describeCommands } from '../src/cli/describe-commands.ts';
import { packageRoot } from '../src/kit/files/paths.ts';

const read = (name: string): string => readFileSync(join(packageRoot, name), 'utf8');

test('llms.txt and llms-full.txt are current: npm run generate', () => {
  expect(read('llms.txt')).toBe(llmsIndex());
  expect(read('llms-full.txt')).toBe(llmsFull());
});

test('llms.txt names every page with a description, and llms-full.txt has them all', () => {
  const listed = [...llmsIndex().matchAll(/^- \[[^\]]+\]\(docs\/([\w-]+)\.md\): \S.*\.$/gm)].map(
    ([, name]) => name!,
  );
  expect(listed.length).toBeGreaterThan(15);
  for (const name of listed) expect(llmsFull()).toContain(read(`docs/${name}.md`).trim());
});

test('package.json publishes both files', () => {
  expect(JSON.parse(read('package.json')).files).toEqual(
    expect.arrayContaining(['llms.txt', 'llms-full.txt']),
  );
});

test('every command and flag that AGENTS.md and llms.txt name exists', async () => {
  const described = new Map((await describeCommands(COMMANDS)).map((command) => [command.name, command]));
  const named = [...`${agentsText()}${llmsIndex()}`.matchAll(/`svc ([^`]+)`/g)].map(([, line]) => line!);
  expect(named.length).toBeGreaterThan(10);
  for (const line of named) {
    const words = line.split(' ').filter((word) => /^[a-z]+$/.test(word));
    const command = described.get(words.slice(0, 2).join(' ')) ?? described.get(words[0]!);
    expect(command, line).toBeDefined();
    const { flags } = command!;
    for (const [, flag] of line.matchAll(/--([a-z-]+)/g))
      expect(flag === 'json' || flags.some((one) => one.name === flag), `${line}: --${flag}`).toBe(true);
  }
});

test('AGENTS.md fits 120 columns', () => {
  for (const line of agentsText().split('\n')) expect(line.length, line).toBeLessThanOrEqual(120);
});
