import type { LockEntry, ManifestV3, PlatformCode, WebhookHandlerDecl } from '../../contracts/index.ts';

/** A plugin that can run. */
export interface LoadedPlugin {
  id: string;
  version: string;
  /** Its folder, symbolic links resolved. */
  root: string;
  manifest: ManifestV3;
  /** The module that is the manifest; absent where the manifest is data. */
  manifestModule?: string;
  /** Absent for a plugin of the project's own folders. */
  locked?: LockEntry;
}

/** A plugin that somebody switched off. */
export interface DisabledPlugin {
  id: string;
  version: string;
  folder: string;
  locked: LockEntry;
}

/** One thing that is wrong with a plugin. */
export interface PluginFault {
  code: Extract<
    PlatformCode,
    | 'VALIDATION_ERROR'
    | 'INTEGRITY_MISMATCH'
    | 'INVALID_MANIFEST'
    | 'INVALID_HANDLER'
    | 'PLUGIN_CONFLICT'
    | 'MISSING_DEPENDENCY'
    | 'CIRCULAR_DEPENDENCY'
  >;
  /** Where in the manifest: `webhooks[0].auth`; empty for the file as a whole. */
  path: string;
  message: string;
  /** A webhook whose sender could not be checked: the gateway must not start. @spec Webhook declaration: auth */
  refusesGatewayStart?: true;
}

/** A plugin that is left out, with every reason. */
export interface BrokenPlugin {
  folder: string;
  /** As far as the manifest tells. */
  id?: string;
  faults: PluginFault[];
  locked?: LockEntry;
}

/** The plugins of a project: those that run and those that are left out. */
export interface PluginRegistry {
  /** Dependencies before those that need them. */
  readonly plugins: readonly LoadedPlugin[];
  readonly broken: readonly BrokenPlugin[];
  readonly disabled: readonly DisabledPlugin[];
  find(id: string): LoadedPlugin | undefined;
  /** Throws PLUGIN_NOT_FOUND, saying why it is broken or which id was likely meant. */
  require(id: string): LoadedPlugin;
  /** Throws PLUGIN_NOT_FOUND, or WEBHOOK_NOT_FOUND for an event the plugin does not declare. */
  requireWebhook(pluginId: string, event: string): { plugin: LoadedPlugin; webhook: WebhookHandlerDecl };
}
