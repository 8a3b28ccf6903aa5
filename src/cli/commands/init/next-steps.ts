import { shellWord } from '../../shell-word.ts';
import type { ExampleName } from './examples.ts';

const FIRST_COMMAND: Record<ExampleName, string | null> = {
  github: 'svc webhooks provision github push   show the secret for GitHub',
  webhook: 'svc webhooks provision my-webhook order.created',
  rest: 'svc plugins show my-rest             show its routes',
  workflow: 'svc workflows run hello --follow     run workflows/hello.yaml',
  none: 'svc plugins create orders            create your own plugin',
};

export function nextSteps(folder: string, example: ExampleName): string[] {
  const first = FIRST_COMMAND[example];
  return [
    ...(folder === '.' ? [] : [`cd ${shellWord(folder)}`]),
    'svc up -d                            start the platform',
    ...(first ? [first] : []),
    'svc doctor                           check this machine and project',
  ];
}

export function productionSteps(): string[] {
  return [
    'svc doctor --profile production      check this machine and project',
    'svc up -d --profile production       start the platform',
  ];
}
