// An agent in JavaScript: spans by the SDK for Node, exported as JSON.
import http from "node:http";
import { context, propagation, SpanKind, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] }).register();
const tracer = trace.getTracer("agent");
const wrong = process.env.WRONG ?? "";
const amount = wrong === "amount" ? 24 : 42;
const calls = [["lookup", { order: "A-1" }], ["refund", { order: "A-1", amount }]];

http.createServer((request, response) => {
  const parent = propagation.extract(context.active(), wrong === "lost" ? {} : request.headers);
  request.resume().on("end", () =>
    tracer.startActiveSpan("POST /chat", { kind: SpanKind.SERVER }, parent, (server) => {
      for (const [name, args] of calls) {
        const attributes = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name };
        if (process.env.CAPTURE !== "off") attributes["gen_ai.tool.call.arguments"] = JSON.stringify(args);
        tracer.startSpan(`execute_tool ${name}`, { attributes }).end();
      }
      server.end();
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify({ text: "I refunded 42 for order A-1." }));
    }),
  );
}).listen(0, "127.0.0.1", function () { console.log(this.address().port); });
