/** Platform permissions of a plugin whose manifest declares none. */
const DEFAULTS = { state: true, cache: true };
/** Platform permissions whose use the platform does not see. */
const UNSEEN = new Set(['platform.dispatch', 'platform.childProcess']);

/** Returns permissions one by one, in the notation of installation plans, such as `network api.example.com`. */
export function grantedBy({ platform, ...others }: Record<string, unknown>): string[] {
  return linesOf({ platform: platform ?? DEFAULTS, ...others }, '');
}

/** Returns whether uses of a permission are recorded. Uses of files and variables are not. */
export function isUseRecorded(permission: string): boolean {
  return /^(?:platform\.|network |invoke )/.test(permission) && !UNSEEN.has(permission);
}

function linesOf(permissions: Record<string, unknown>, prefix: string): string[] {
  return Object.entries(permissions).flatMap(([name, value]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    if (Array.isArray(value)) return value.map((each) => `${path} ${each}`);
    if (typeof value === 'object' && value !== null) return linesOf(value as Record<string, unknown>, path);
    if (value === false || value === undefined || value === null) return [];
    return value === true ? [path] : [`${path} ${String(value)}`];
  });
}
