import { shellWord } from '../../shell-word.ts';
import type { ExampleName } from './examples.ts';

const TRY: Record<ExampleName, string | null> = {
  github: 'svc webhooks provision github push   the secret to give to GitHub',
  webhook: 'svc webhooks provision my-webhook order.created',
  rest: 'svc plugins show my-rest             its routes',
  workflow: 'svc workflows run hello --follow     run workflows/hello.yaml',
  none: 'svc plugins create orders            a plugin of your own',
};

/** Commands, each with what it is for. */
export function nextSteps(folder: string, example: ExampleName): string[] {
  const first = TRY[example];
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
