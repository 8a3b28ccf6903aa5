/** Reads an own property. Inherited properties are ignored, because a plugin or tenant can be named "constructor". */
export function ownValue<Value>(values: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(values, key) ? values[key] : undefined;
}
