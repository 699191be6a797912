/** Sends a declared tool's request, once: it may have done something even when no answer came. */
import type { IncomingMessage } from "node:http";
import { DECLARED } from "../../limits.ts";
import { cleanText } from "../clean-text.ts";
import type { BuiltinContext, BuiltinResult, DeclaredRequest, DeclaredTool } from "../types.ts";
import { ToolError } from "../upstreams/builtin.ts";
import { ExchangeError, mediaType, openExchange, readBody } from "../upstreams/http-exchange.ts";
import { mapResult } from "./result-mapping.ts";
import { requestBody, requestUrl } from "./request-line.ts";

/** The result of one request. Throws ToolError. */
export async function runRequest(
  tool: DeclaredTool,
  request: DeclaredRequest,
  values: Record<string, unknown>,
  context: BuiltinContext,
): Promise<BuiltinResult> {
  const late = AbortSignal.timeout(tool.timeoutMs);
  const signal = AbortSignal.any([context.signal, late]);
  const url = requestUrl(request.url, values);
  const body = requestBody(request, values);
  const headers = { accept: "*/*", ...request.headers, ...(body ? { "content-type": body.type } : {}) };
  try {
    const response = await openExchange({ url, method: request.method, headers, ...(body ? { body: body.text } : {}) }, signal);
    return await resultOf(tool, response);
  } catch (error) {
    if (late.aborted && !context.signal.aborted) throw new ToolError(`The server did not answer within ${tool.timeoutMs / 1_000} s.`);
    if (error instanceof ExchangeError) throw new ToolError(`The request failed (${cleanText(error.code, 64)}).`);
    throw error;
  }
}

async function resultOf(tool: DeclaredTool, response: IncomingMessage): Promise<BuiltinResult> {
  const status = response.statusCode ?? 0;
  const isGood = status >= 200 && status < 300;
  const bytes = await readBody(response, tool.maxOutputBytes).catch((error: unknown) => {
    if (!(error instanceof RangeError)) throw error;
    if (!isGood) return Buffer.alloc(0); // The status says enough.
    throw new ToolError(`The server gave more than ${tool.maxOutputBytes} bytes. Ask for less, or raise maxOutputBytes.`);
  });
  if (isGood) return mapResult({ bytes, type: mediaType(response) }, tool.result);
  const said = cleanText(bytes.toString("utf8"), DECLARED.errorLength);
  const why = status >= 300 && status < 400 ? "Redirects are not followed: the configuration has to name the place itself." : said;
  throw new ToolError(`The server answered with HTTP ${status}.${why === "" ? "" : ` ${why}`}`);
}
