import { cruise, type IConfiguration, type ICruiseResult } from 'dependency-cruiser';

const CONFIG = new URL('../../.dependency-cruiser.js', import.meta.url).href;

/** An import that breaks a rule of .dependency-cruiser.js. */
export interface ImportFault {
  rule: string;
  from: string;
  to: string;
}

/** Checks the sources below `<folder>/src` by the rules of `npm run lint`. */
export async function importFaults(folder: string): Promise<ImportFault[]> {
  const { default: config } = (await import(CONFIG)) as { default: IConfiguration };
  const { forbidden = [], options = {} } = config;
  const { output } = await cruise(['src'], {
    ...options,
    baseDir: folder,
    validate: true,
    ruleSet: { forbidden },
  });
  const { violations } = (output as ICruiseResult).summary;
  return violations.map(({ rule, from, to }) => ({ rule: rule.name, from, to }));
}
