import { manifestDigest, type SandboxInForce, type ValidateOptions } from '../../../plugins/index.ts';
import { requireAgreed } from './refusals.ts';

/** The operator's consent to run a plugin's code. */
export interface Agreed {
  /** Digest of the manifest that the operator saw in the plan. */
  manifestDigest?: string | undefined;
  /** Permits running a manifest module without the bubblewrap sandbox. */
  runManifest?: boolean | undefined;
}

/**
 * Returns the reason why a manifest module must not run. Returns undefined if the operator permitted the run or
 * bubblewrap confines the module.
 */
export async function whyNotRun(
  { runManifest = false }: Pick<Agreed, 'runManifest'>,
  sandbox: () => Promise<SandboxInForce>,
): Promise<string | undefined> {
  if (runManifest) return undefined;
  const { mode, reason } = await sandbox();
  return mode === 'bwrap' ? undefined : (reason ?? mode);
}

/** Returns options that allow loading handlers only if the operator has approved the manifest. */
export async function whenAgreed(
  agreed: Agreed,
  sandbox: () => Promise<SandboxInForce>,
): Promise<ValidateOptions> {
  return {
    manifestNotRun: await whyNotRun(agreed, sandbox),
    agree: (manifest) => requireAgreed(manifestDigest(manifest), agreed.manifestDigest),
  };
}
