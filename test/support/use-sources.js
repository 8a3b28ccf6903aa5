// Preloaded by tests that run a plugin's own tests: `svc-platform/testing` means the sources, as they are now.
import { registerHooks } from 'node:module';

const sources = {
  'svc-platform/testing': '../../src/testing/index.ts',
  'svc-platform/sdk': '../../src/sdk/index.ts',
};
registerHooks({
  resolve: (specifier, context, next) =>
    Object.hasOwn(sources, specifier)
      ? { url: new URL(sources[specifier], import.meta.url).href, shortCircuit: true }
      : next(specifier, context),
});
