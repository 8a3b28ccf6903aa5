import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../src/kit/files/paths.ts';
import type { AnyJson } from '../support/any-json.ts';

const FOLDER = '.github/workflows';
const about = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8'));
const dockerfile = readFileSync(join(packageRoot, 'Dockerfile'), 'utf8');

type Job = { steps: AnyJson[]; permissions?: Record<string, string>; needs?: string; environment?: string };

describe.each(readdirSync(join(packageRoot, FOLDER)))('the workflow file %s', (name) => {
  const text = readFileSync(join(packageRoot, FOLDER, name), 'utf8');
  const workflow = parse(text, { strict: true, uniqueKeys: true }) as AnyJson;
  const jobs = Object.entries(workflow.jobs as Record<string, Job>);
  const steps = jobs.flatMap(([, job]) => job.steps);
  const commands = steps.map(({ run = '' }) => run).join('\n');

  test('runs scripts and programs that exist', () => {
    for (const [, script] of commands.matchAll(/npm (?:run(?: -s)?|run-script) ([\w:-]+)/g))
      expect(Object.keys(about.scripts)).toContain(script);
    const programs = [...commands.matchAll(/(?:^|\s)(\.ci\/[\w-]+)/g)].map(([, path]) => path!);
    expect(programs.length).toBeGreaterThan(0);
    for (const path of programs)
      expect([path, (statSync(join(packageRoot, path)).mode & 0o111) !== 0]).toEqual([path, true]);
  });

  test('names each action with a version, and each job ends in time', () => {
    for (const { uses } of steps.filter((step) => step.uses))
      expect(uses).toMatch(/^[\w-]+\/[\w-]+@(v\d+|[0-9a-f]{40})$/);
    for (const [, job] of jobs) expect((job as AnyJson)['timeout-minutes']).toBeGreaterThan(0);
  });

  test('may read the repository alone, except in jobs that publish what was checked', () => {
    expect(workflow.permissions).toEqual({ contents: 'read' });
    for (const [, { permissions = {}, needs, environment }] of jobs) {
      if (!Object.values(permissions).includes('write')) continue;
      expect({ needs, environment }).toEqual({ needs: 'check', environment: 'release' });
      expect(permissions.contents).toBe('read');
    }
    for (const { uses, with: input } of steps)
      if (uses?.startsWith('actions/checkout@')) expect(input['persist-credentials']).toBe(false);
  });

  test('puts no expression into a shell command', () => {
    expect(commands).not.toContain('${{');
  });
});

test('a release publishes the package and both images, with provenance', () => {
  const { jobs } = parse(readFileSync(join(packageRoot, FOLDER, 'release.yml'), 'utf8')) as AnyJson;
  const publish = jobs.npm.steps.find(({ run = '' }: AnyJson) => run.includes('npm publish')).run;
  expect(publish).toContain(`${about.name}-*.tgz`);
  expect(publish).toContain('--provenance');
  for (const { target } of jobs.image.strategy.matrix.include)
    expect(dockerfile).toMatch(new RegExp(`^FROM \\S+ AS ${target}$`, 'm'));
  const build = jobs.image.steps.find(({ uses = '' }: AnyJson) =>
    uses.startsWith('docker/build-push-action'),
  );
  expect(build.with).toMatchObject({ provenance: 'mode=max', sbom: true, push: true });
  for (const file of ['README.md', 'CHANGELOG.md', 'LICENSE'])
    expect(existsSync(join(packageRoot, file))).toBe(true);
});
